"""Drives a client program that takes commands as lines and prints what happens as lines of JSON."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scripted_server import DEADLINE_S

Record = dict[str, Any]


class ScriptClient:
    """One client in a process of its own. `options` are those of the header."""

    def __init__(self, program: Sequence[str | Path], **options: str | int) -> None:
        self._lines: list[Record] = []
        self._next_record = 0
        self._next_reply = 0
        self._is_over = False
        self._changed = threading.Condition()
        settings = [f"{key.replace('__', ':', 1)}={value}" for key, value in options.items()]
        self.process = subprocess.Popen(
            [*program, *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.created = self._wait_for_reply()

    def call(self, command: str, *arguments: object) -> Record:
        """Sends a command and returns its reply, whatever its status."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join([command, *map(str, arguments)]) + "\n")
        self.process.stdin.flush()
        reply = self._wait_for_reply()
        assert reply["reply"] == command
        return reply

    def do(self, command: str, *arguments: object) -> Record:
        """The same for a command that must succeed."""
        reply = self.call(command, *arguments)
        assert reply["status"] == "BIRD_OK", reply
        return reply

    def wait_for(self, kind: str, **fields: object) -> Record:
        """The next record of this kind with these fields; records before it are passed over."""
        deadline = time.monotonic() + DEADLINE_S
        with self._changed:
            index = self._next_record
            while True:
                while index < len(self._lines):
                    line = self._lines[index]
                    index += 1
                    if line.get("record") == kind and all(line[key] == value for key, value in fields.items()):
                        self._next_record = index
                        return line
                if self._is_over or not self._changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"no {kind} {fields}; last lines: {self._lines[-8:]}")

    def wait_for_state(self, state: str) -> Record:
        return self.wait_for("state", current=state)

    def all(self, kind: str, **fields: object) -> list[Record]:
        """All records of this kind with these fields, so far."""
        with self._changed:
            found = [line for line in self._lines if line.get("record") == kind]
        return [line for line in found if all(line[key] == value for key, value in fields.items())]

    def everything(self) -> list[Record]:
        """All records so far, of whatever kind, in the order in which they came."""
        with self._changed:
            return [line for line in self._lines if "record" in line]

    def statistic(self, name: str) -> int:
        return int(self.do("statistics")[name])

    def wait_for_statistic(self, name: str, is_so: Callable[[int], bool]) -> int:
        """What it is when it is so: some counters follow behind the records that they count."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_so(value := self.statistic(name)):
            assert time.monotonic() < deadline, f"{name} stays at {value}"
            time.sleep(0.01)
        return value

    def finish(self) -> None:
        """Ends the input; the program must end well and soon."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            status = self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert status == 0, status

    def decode(self, text: str) -> Record:
        """What the program printed, as it comes."""
        line: Record = json.loads(text)
        return line

    def _wait_for_reply(self) -> Record:
        with self._changed:
            while True:
                while self._next_reply < len(self._lines):
                    line = self._lines[self._next_reply]
                    self._next_reply += 1
                    if "reply" in line:
                        return line
                if self._is_over or not self._changed.wait(DEADLINE_S):
                    raise AssertionError(f"no reply; last lines: {self._lines[-8:]}")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line = self.decode(text)
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
