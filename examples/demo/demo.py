"""A local edge, three programs that listen to it, and the official server SDK that talks to them.

Shows what happens and checks it: each program must print exactly the events that it should get, in order. Run by
`make demo`; ends by itself, with status 0 if everything was as it should be.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    from bird import Bird

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 30.0
COMMANDS: dict[str, list[str | Path]] = {
    "c": [ROOT / "build/c/demo_program"],
    "python": [sys.executable, ROOT / "examples/demo/program.py"],
    "swift": [ROOT / ".build/release/swift-example", "chat"],
}


class SurpriseError(Exception):
    """Something was not as it should be."""


class Program:
    """One of the programs: what it prints as events, and everything else that it prints."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [*COMMANDS[name], *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self._events: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._statuses: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in pipe(self.process.stdout):
            is_event = line.startswith("event ")
            (self._events if is_event else self._statuses).put(line.removeprefix("event ").rstrip("\n"))

    def expect_event(self, expected: str) -> None:
        """The next event must be this one."""
        event = self._next(self._events, f"the event {expected}")
        if event != expected:
            raise SurpriseError(f"{self.name} printed the event {event!r} and not {expected!r}")

    def expect_status(self, *expected: str) -> list[str]:
        """Waits for lines that begin so, in this order; other lines may come in between."""
        return [self._status(start) for start in expected]

    def expect_statuses(self, *expected: str) -> None:
        """The next lines must be these, in any order."""
        lines = {self._next(self._statuses, f"one of {expected}") for _ in expected}
        if lines != set(expected):
            raise SurpriseError(f"{self.name} printed {lines} and not {set(expected)}")

    def _status(self, start: str) -> str:
        while True:
            line = self._next(self._statuses, f"the line {start}")
            if line.startswith(start):
                return line

    def _next(self, lines: queue.SimpleQueue[str], what: str) -> str:
        try:
            return lines.get(timeout=DEADLINE_S)
        except queue.Empty:
            raise SurpriseError(f"{self.name} did not print {what} within {DEADLINE_S:.0f} s") from None

    def write(self, line: str) -> None:
        stdin = pipe(self.process.stdin)
        stdin.write(f"{line}\n")
        stdin.flush()

    def expect_end(self) -> None:
        """It ends by itself with status 0 and has printed no more events."""
        if self.process.wait(DEADLINE_S) != 0:
            raise SurpriseError(f"{self.name} ended with status {self.process.returncode}")
        self._reader.join()
        if not self._events.empty():
            raise SurpriseError(f"{self.name} printed the event {self._events.get()!r}, which was not for it")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


class Edge:
    """`bird-realtime edge`, as anyone would start it."""

    def __init__(self, members: Sequence[str]) -> None:
        options = [option for member in members for option in ("--member", f"{member}={member.capitalize()}")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bird_realtime", "edge", "--port", "0", "--json", "--client-events", *options],
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.facts: dict[str, Any] = json.loads(pipe(self.process.stdout).readline())

    def control(self, name: str) -> Any:
        """Calls one of the edge's test controls."""
        connection = http.client.HTTPConnection(self.facts["ws_host"], timeout=DEADLINE_S)
        with contextlib.closing(connection):
            connection.request("POST", f"/_edge/{name}", "{}", {"content-type": "application/json"})
            return json.load(connection.getresponse())["result"]

    def wait_for_channels(self, members: Sequence[str]) -> None:
        """Waits until a connection of each member is subscribed to the three channels and to its member channel."""

        def is_ready() -> bool:
            ready = [each["member_id"] for each in self.control("connections") if len(each["channels"]) == 4]
            return sorted(ready) == sorted(members)

        wait_until(is_ready, "all programs to be subscribed to everything")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise TypeError("the process was started without a pipe")
    return stream


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise SurpriseError(f"waited {DEADLINE_S:.0f} s for {what}")
        time.sleep(0.02)


class Demo:
    def __init__(self, stack: ExitStack) -> None:
        self.names = list(COMMANDS)
        self.edge = Edge(self.names)
        stack.callback(self.edge.close)
        facts = self.edge.facts
        self.app_id: str = facts["app_id"]
        self.sdk = stack.enter_context(
            Bird(
                api_key="bk_eu1_local",  # any will do, since the edge was started without one
                base_url=facts["base_url"],
                realtime_key=facts["app_key"],
                realtime_secret=facts["app_secret"],
            )
        )
        self.events = 0
        title(f"edge at {facts['ws_host']}: three programs connect, subscribe to three channels and sign in")
        self.programs: dict[str, Program] = {}
        for count, name in enumerate(self.names, 1):
            arguments = [facts[key] for key in ("app_key", "ws_host", "auth_endpoint", "member_auth_endpoint")]
            program = self.programs[name] = Program(name, [*arguments, name])
            stack.callback(program.close)
            program.expect_status("connecting", "connected")
            # The answers to the subscriptions and to the signin come in any order.
            program.expect_statuses(
                "subscribed orders",
                "subscribed private-ledger",
                f"subscribed presence-lobby as {name}, {count} here",
                f"signed in as {name}",
            )
            show([name], f"connected, on orders, private-ledger and presence-lobby ({count} here), signed in as {name}")
        self.edge.wait_for_channels(self.names)

    def expect(self, names: Sequence[str], *events: str) -> None:
        """These programs, and no others, print these events next."""
        for event in events:
            for name in names:
                self.programs[name].expect_event(event)
            show(names, event)
            self.events += len(names)

    def run(self) -> None:
        sdk, app_id = self.sdk.realtime, self.app_id
        title("messagebird-sdk publishes to a channel")
        sdk.publish(app_id, event="stock.moved", channels=["orders"], data={"sku": "A-19", "left": 4})
        self.expect(self.names, 'orders stock.moved {"sku":"A-19","left":4}')

        title("messagebird-sdk publishes a batch")
        batch: dict[str, str] = {"orders": "order.paid", "private-ledger": "booked", "presence-lobby": "lights.on"}
        sdk.publish_batch(
            app_id, events=[{"event": event, "channel": channel, "data": {"n": 1}} for channel, event in batch.items()]
        )
        self.expect(self.names, *(f'{channel} {event} {{"n":1}}' for channel, event in batch.items()))

        title("messagebird-sdk sends to each member")
        for name in self.names:
            sdk.members.send(app_id, name, event="parcel.left", data={"for": name})
            self.expect([name], f'me parcel.left {{"for":"{name}"}}')

        title("each program sends a client event to the others")
        for name in self.names:
            self.programs[name].write(f'{{"from":"{name}"}}')
            self.expect(
                [other for other in self.names if other != name], f'private-ledger client-said {{"from":"{name}"}}'
            )

        title("the edge drops every connection; nothing is called in the programs")
        self.edge.control("drop_connections")
        for program in self.programs.values():
            program.expect_status("unavailable", "connected")
        self.edge.wait_for_channels(self.names)
        show(self.names, "unavailable, then connected, subscribed and signed in again")
        sdk.publish(app_id, event="stock.moved", channels=["presence-lobby"], data={"sku": "A-19", "left": 3})
        self.expect(self.names, 'presence-lobby stock.moved {"sku":"A-19","left":3}')
        for name in self.names:
            sdk.members.send(app_id, name, event="parcel.left", data={"again": True})
        self.expect(self.names, 'me parcel.left {"again":true}')

        title("messagebird-sdk disconnects the members, one after the other")
        for position, name in enumerate(self.names):
            sdk.members.disconnect(app_id, name)
            error, state = self.programs[name].expect_status("error 4009", "failed")
            self.programs[name].expect_end()
            show([name], f"{error}; {state}; ended")
            left = self.names[position + 1 :]
            if left:
                sdk.publish(app_id, event="still.here", channels=["orders"], data=left)
                self.expect(left, f"orders still.here {json.dumps(left, separators=(',', ':'))}")


def title(text: str) -> None:
    print(f"\n{text}", flush=True)


def show(names: Sequence[str], text: str) -> None:
    columns = (name if name in names else "" for name in COMMANDS)
    print("  " + "".join(f"{column:<8}" for column in columns) + text, flush=True)


def main() -> int:
    try:
        with ExitStack() as stack:
            demo = Demo(stack)
            demo.run()
            print(f"\ndemo: success: {demo.events} events, each of them where it belongs")
    except SurpriseError as surprise:
        print(f"\ndemo: failed: {surprise}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
