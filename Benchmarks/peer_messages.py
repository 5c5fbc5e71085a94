"""What a program does itself on a WebSocket library that knows no Bird protocol: read each message and its data,
and find the handler."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from measurement import Run

SUBSCRIBE = '{"event":"bird:subscribe","data":{"channel":"bench"}}'


class Client:
    """One handler of the channel's events, which is given the parsed data."""

    def __init__(self, run: Run, done: Callable[[], None], parse: Callable[[Any], Any] = json.loads) -> None:
        self._run = run
        self._done = done
        self._parse = parse
        self._handlers = {("bench", "tick"): self._on_tick}

    @property
    def url(self) -> str:
        scheme = "ws" if self._run.ca_file is None else "wss"
        return f"{scheme}://127.0.0.1:{self._run.port}/app/bench?protocol=7"

    def receive(self, message: Any) -> bool:
        """True for the handshake, which is to be answered with SUBSCRIBE."""
        content = self._parse(message)
        handler = self._handlers.get((content.get("channel"), content["event"]))
        if handler is None:
            return bool(content["event"] == "bird:connection_established")
        text = content["data"]
        handler(text, self._parse(text))
        return False

    def _on_tick(self, text: str, data: object) -> None:
        if data is None:
            sys.exit("an event without data was delivered")
        if self._run.count(text):
            self._done()
