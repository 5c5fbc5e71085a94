"""A machine that can be suspended, and whose wall clock can be set (CHarness/preload/clock.c)."""

from __future__ import annotations

import struct
from pathlib import Path

from paths import PROGRAMS


class Clock:
    """The clocks of a client's machine, which can be suspended, and whose wall clock can be set."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "clock"
        self._file.write_bytes(bytes(16))
        self._suspended_ms = self._set_ms = 0

    def suspend(self, seconds: int) -> None:
        self._suspended_ms += seconds * 1000
        self._write()

    def set_wall_clock(self, seconds: int) -> None:
        self._set_ms += seconds * 1000
        self._write()

    def _write(self) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("=qq", self._suspended_ms, self._set_ms))

    @property
    def command(self) -> list[str | Path]:
        """Stands before a program that is to have these clocks."""
        return ["env", f"LD_PRELOAD={PROGRAMS / 'clock.so'}", f"BIRD_TEST_CLOCK={self._file}"]
