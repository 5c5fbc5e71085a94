"""Twenty clients get a thousand events a second each while their edge ends and begins again: prints what came of it."""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from lab_edge import CHANNEL
from paths import CLIENT_SCRIPT
from scale import reserved_ports
from scripted_server import Connection, ScriptedServer, event, text
from trial import LabClient

AUDIENCE = 20
STREAM_S = 2.0
DOWN_S = 0.2
BATCH = 10
INTERVAL_S = 0.01


class StreamEdge:
    """The numbers of a client, whom its app key tells, go on from one connection to the next."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sent: dict[str, int] = {}
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        self._is_over.clear()
        self._server = ScriptedServer(port=self._port)
        self._server.listener.settimeout(None)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def end(self) -> None:
        """As at the end of a process: what was sent before is on its way."""
        self._is_over.set()
        self._server.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._server.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=[Connection(sock)], daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: Connection) -> None:
        with connection:
            connection.establish()
            connection.join(CHANNEL)
            name = connection.request.split(b"?")[0].rpartition(b"/")[2].decode()
            due = time.monotonic()
            while not self._is_over.wait(max(0.0, due - time.monotonic())):
                first = self.sent.get(name, 0)
                self.sent[name] = first + BATCH
                numbers = range(first, first + BATCH)
                connection.send(b"".join(text(event("tick", CHANNEL, number)) for number in numbers))
                due += INTERVAL_S


def main() -> None:
    with ExitStack() as stack:
        [port] = stack.enter_context(reserved_ports(1))
        edge = StreamEdge(port)
        edge.begin()
        clients = {}
        for number in range(AUDIENCE):
            name = f"pk_{number}"
            client = LabClient(
                [CLIENT_SCRIPT], app_key=name, ws_host=f"127.0.0.1:{port}", allow_insecure=1, consume="thread"
            )
            stack.callback(client.finish)
            client.do("subscribe", CHANNEL, 0)
            client.do("connect")
            clients[name] = client
        for client in clients.values():
            client.wait_for("event")
        time.sleep(STREAM_S)
        edge.end()
        ended_at = time.monotonic()
        time.sleep(DOWN_S)
        edge.begin()
        begun_at = time.monotonic()
        told_s = back_s = 0.0
        for client in clients.values():
            told_s = max(told_s, client.wait_for_state("unavailable")["at_s"] - ended_at)
            client.wait_for_state("connected")
            back_s = max(back_s, client.wait_for("event")["at_s"] - begun_at)
        time.sleep(STREAM_S)
        edge.end()
        received = lost = 0
        for name, client in clients.items():
            client.wait_for("event", data=str(edge.sent[name] - 1))
            numbers = [int(record["data"]) for record in client.all("event")]
            assert numbers == sorted(set(numbers)), f"not in order, or twice: {numbers}"
            received += len(numbers)
            lost += edge.sent[name] - len(numbers)
    print(json.dumps({"told_s": max(0.0, told_s), "back_s": back_s, "lost": lost, "received": received}))


if __name__ == "__main__":
    main()
