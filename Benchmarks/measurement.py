"""What the benchmark clients in Python share: the same arguments and the same line of JSON as Benchmarks/measure.h."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import ssl
import sys
import time
from dataclasses import dataclass
from typing import Any

STAMP_DIGITS = 20
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1}


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
        self._latencies_ns: list[int] | None = [] if "BENCH_LATENCY" in os.environ else None

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

    def arrived(self, data: str | bytes) -> None:
        if self._latencies_ns is not None:
            self._latencies_ns.append(time.monotonic_ns() - int(data[1 : 1 + STAMP_DIGITS]))

    def print(self, events: int) -> None:
        result: dict[str, Any] = {
            "events": events,
            "seconds": self._seconds,
            "cpu_seconds": self._cpu_seconds,
            "allocations": self._allocations,
        }
        if self._latencies_ns is not None:
            ordered = sorted(self._latencies_ns)
            result["latency_ns"] = {name: ordered[int((len(ordered) - 1) * part)] for name, part in PERCENTILES.items()}
        print(json.dumps(result))


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@dataclass
class Run:
    """Counts events, checks each, and measures those after the warm-up."""

    port: int
    data_bytes: int
    warmup: int
    events: int

    @staticmethod
    def of_arguments() -> Run:
        if len(sys.argv) != 5:
            sys.exit("usage: client PORT BYTES WARMUP EVENTS")
        return Run(*map(int, sys.argv[1:]))

    def __post_init__(self) -> None:
        self._measurement = Measurement()
        self._received = 0

    @property
    def ca_file(self) -> str | None:
        """Of a server with TLS."""
        return os.environ.get("BENCH_CA_FILE")

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.ca_file) if self.ca_file else None

    def count(self, data: str | bytes) -> bool:
        """Call for each event with its data; True with the last one. A client that delivers the wrong thing is none."""
        if len(data) != self.data_bytes:
            sys.exit("an event with unexpected data was delivered")
        self._received += 1
        if self._received > self.warmup:
            self._measurement.arrived(data)
        if self._received == self.warmup:
            self._measurement.begin()
        if self._received != self.warmup + self.events:
            return False
        self._measurement.end()
        return True

    def print(self) -> None:
        self._measurement.print(self.events)
