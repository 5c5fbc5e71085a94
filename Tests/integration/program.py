"""Runs a program that prints lines, and waits for the lines that a test expects."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from scripted_server import DEADLINE_S


class Program:
    def __init__(self, command: Sequence[str | Path]) -> None:
        self.lines: list[str] = []
        self._next = 0
        self._is_over = False
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            # A program that crashes ends at once, without a helper that goes on holding its output.
            env={**os.environ, "SWIFT_BACKTRACE": "enable=no"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The next line that matches as a whole; lines before it are passed over."""
        with self._changed:
            while True:
                while self._next < len(self.lines):
                    self._next += 1
                    found = re.fullmatch(pattern, self.lines[self._next - 1])
                    if found:
                        return found
                if self._is_over or not self._changed.wait(DEADLINE_S):
                    raise AssertionError(f"no line {pattern!r} in {self.lines}")

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        """The exit status."""
        return self.process.wait(DEADLINE_S)

    def close(self) -> None:
        """Ends the program if it still runs."""
        self.process.terminate()
        self.process.wait(DEADLINE_S)
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
