"""A cable with faults between the clients of the soak and its edge, with TLS and without.

Each connection draws its own end: after how many bytes or how long, and how. It prints a line of JSON with its ports,
and obeys lines on standard input: "faults", "heal" (connections that are to end do, the others stay), and "counts",
which answers with how often each fault was. It ends with its input.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import socket
import ssl
import struct
import sys
import time
from collections import Counter
from dataclasses import dataclass

CHUNK_BYTES = 64 * 1024
PIECES_BYTES = 1500
HOLD_S = 6.0  # longer than any client here waits for a word

KINDS = ("RST", "RST upstream", "FIN", "freeze", "pieces", "garbage", "refuse")


@dataclass
class Plan:
    """How a connection ends, and when: after so many bytes from the edge, or at the first bytes after this time."""

    kind: str
    after_bytes: int | None
    after_s: float


def draw_plan(chance: random.Random, life_s: float) -> Plan:
    kind = chance.choice(KINDS)
    after_bytes = int(2 ** chance.uniform(0, 13)) if chance.random() < 0.4 else None
    return Plan(kind, after_bytes, chance.expovariate(1 / life_s))


class Relay:
    def __init__(self, seed: int, life_s: float) -> None:
        self._chance = random.Random(seed)
        self._life_s = life_s
        self._is_on = False
        self._writers: dict[asyncio.StreamWriter, Plan | None] = {}
        self._tasks: set[asyncio.Task[None] | None] = set()  # the loop would let them be collected
        self.counts: Counter[str] = Counter()

    def start_faults(self) -> None:
        self._is_on = True

    def heal(self) -> None:
        """Who had a fault coming is cut off: it would come when all is said to be well."""
        self._is_on = False
        for writer, plan in list(self._writers.items()):
            if plan is not None:
                reset(writer)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        plan = draw_plan(self._chance, self._life_s) if self._is_on else None
        if plan is not None and plan.kind == "refuse":
            self.counts["refuse"] += 1
            reset(writer)
            return
        self._writers[writer] = plan
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._serve(reader, writer, port, plan)
        finally:
            del self._writers[writer]
            self._tasks.discard(task)
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, plan: Plan | None
    ) -> None:
        edge_reader, edge_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            is_up = plan is not None and plan.kind == "RST upstream"
            up = asyncio.ensure_future(pump(reader, edge_writer, self._fault(plan) if is_up else None))
            # The end of the client is the end of both.
            up.add_done_callback(lambda _: edge_writer.transport.abort())
            due = await pump(edge_reader, writer, None if is_up else self._fault(plan))
            if due is not None:
                await self._fail(due, edge_reader, writer, up)
            up.cancel()
            await asyncio.wait([up])
            if not up.cancelled() and up.exception() is None and up.result() is not None:
                self.counts["RST upstream"] += 1
                reset(writer)
        finally:
            edge_writer.transport.abort()

    def _fault(self, plan: Plan | None) -> Fault | None:
        return None if plan is None else Fault(plan, time.monotonic() + plan.after_s, self._chance)

    async def _fail(
        self, due: Due, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, up: asyncio.Future[Due | None]
    ) -> None:
        self.counts[due.kind] += 1
        if due.kind == "RST":
            reset(writer)
        elif due.kind == "pieces":
            await self._send_pieces(due.rest, reader, writer)
        else:
            if due.kind == "FIN":
                writer.write_eof()
            elif due.kind == "garbage":
                writer.write(self._chance.randbytes(self._chance.randrange(1, 300)))
            await asyncio.wait([up], timeout=HOLD_S)  # until the client has gone

    async def _send_pieces(self, data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A byte at a time, and then the end."""
        for _ in range(PIECES_BYTES):
            if not data:
                data = await reader.read(CHUNK_BYTES)
                if not data:
                    return
            writer.write(data[:1])
            await writer.drain()
            await asyncio.sleep(0)
            data = data[1:]
        reset(writer)


@dataclass
class Due:
    """What was not handed on any more."""

    kind: str
    rest: bytes


class Fault:
    """Says for each chunk whether the fault is due, and where."""

    def __init__(self, plan: Plan, due: float, chance: random.Random) -> None:
        self.kind = plan.kind
        self._after_bytes = plan.after_bytes
        self._due = due
        self._chance = chance
        self._passed = 0

    def cut(self, data: bytes) -> int | None:
        """How many of these bytes are still handed on; None: all, and it goes on."""
        self._passed += len(data)
        if self._after_bytes is None:
            return self._chance.randrange(len(data)) if time.monotonic() >= self._due else None
        over = self._passed - self._after_bytes
        return len(data) - over if over >= 0 else None


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault | None = None) -> Due | None:
    """Hands on until one side ends, or the fault is due."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            kept = None if fault is None else fault.cut(data)
            writer.write(data[:kept])
            await writer.drain()
            if fault is not None and kept is not None:
                return Due(fault.kind, data[kept:])
    return None


def reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def run(seed: int, life_s: float, edge_port: int, certificate: str, key: str) -> None:
    relay = Relay(seed, life_s)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def front(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The TLS server: its clients reach it through the relay."""
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            edge_reader, edge_writer = await asyncio.open_connection("127.0.0.1", edge_port)
            pumps = [asyncio.ensure_future(pump(reader, edge_writer)), asyncio.ensure_future(pump(edge_reader, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for task in pumps:
                task.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            edge_writer.transport.abort()

    tls_front = await asyncio.start_server(front, "127.0.0.1", 0, ssl=context)
    tls_port = tls_front.sockets[0].getsockname()[1]
    ports = {}
    servers = []
    for name, port in (("plain", edge_port), ("tls", tls_port)):

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port) -> None:
            await relay.serve(reader, writer, port)

        server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
        servers.append(server)
        ports[name] = server.sockets[0].getsockname()[1]
    answer(ports)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).strip():
        if line == b"faults":
            relay.start_faults()
        elif line == b"heal":
            relay.heal()
        elif line == b"counts":
            answer(relay.counts)
        else:
            raise ValueError(f"there is no command {line!r}")


def answer(values: object) -> None:
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--life-s", type=float, required=True)
    parser.add_argument("--edge-port", type=int, required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    options = parser.parse_args()
    asyncio.run(run(options.seed, options.life_s, options.edge_port, options.certificate, options.key))
