"""A Python program with one handler, which takes each event's bytes without parsing them."""

from __future__ import annotations

import ctypes
import json
import resource
import sys
import threading
import time

from bird_realtime import BirdRealtime
from bird_realtime.events import Event

DEADLINE_SECONDS = 60


class Measurement:
    """The same as Benchmarks/measure.h."""

    def __init__(self) -> None:
        program = ctypes.CDLL(None)
        self._counter = program if hasattr(program, "count_alloc_begin") else None
        if self._counter is not None:
            self._counter.count_alloc_end.restype = ctypes.c_uint64
        self._seconds = 0.0
        self._cpu_seconds = 0.0
        self._allocations: int | None = None

    def begin(self) -> None:
        self._cpu_seconds = _cpu_seconds()
        self._seconds = time.monotonic()
        if self._counter is not None:
            self._counter.count_alloc_begin()

    def end(self) -> None:
        if self._counter is not None:
            self._allocations = self._counter.count_alloc_end()
        self._seconds = time.monotonic() - self._seconds
        self._cpu_seconds = _cpu_seconds() - self._cpu_seconds

    def print(self, events: int) -> None:
        result = {
            "events": events,
            "seconds": self._seconds,
            "cpu_seconds": self._cpu_seconds,
            "allocations": self._allocations,
        }
        print(json.dumps(result))


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit("usage: client PORT BYTES WARMUP EVENTS")
    port, data_bytes, warmup, events = map(int, sys.argv[1:])
    last = warmup + events
    measurement = Measurement()
    is_done = threading.Event()
    received = 0
    unexpected = 0

    def on_tick(event: Event) -> None:
        nonlocal received, unexpected
        received += 1
        unexpected += len(event.raw) != data_bytes
        if received == warmup:
            measurement.begin()
        elif received == last:
            measurement.end()
            is_done.set()

    with BirdRealtime(app_key="bench", ws_host=f"127.0.0.1:{port}", allow_insecure=True, auto_connect=False) as bird:
        bird.subscribe("bench").bind("tick", on_tick)
        bird.connect()
        if not is_done.wait(DEADLINE_SECONDS):
            sys.exit("the events did not arrive in time")
    if unexpected:
        sys.exit(f"{unexpected} events with unexpected data were delivered")
    measurement.print(events)


if __name__ == "__main__":
    main()
