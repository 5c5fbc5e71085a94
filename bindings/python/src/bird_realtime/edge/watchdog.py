"""The edge's own check that a quiet client is alive (Bird protocol §6, server side)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Watchdog:
    """Calls `ping` after `quiet_s` without a message and `give_up` after `pong_timeout_s` more.

    A `quiet_s` of None turns it off.
    """

    def __init__(
        self,
        quiet_s: float | None,
        pong_timeout_s: float,
        ping: Callable[[], None],
        give_up: Callable[[], None],
    ) -> None:
        self._quiet_s = quiet_s
        self._pong_timeout_s = pong_timeout_s
        self._ping = ping
        self._give_up = give_up
        self._timer: asyncio.TimerHandle | None = None
        self.feed()

    def feed(self) -> None:
        """A message came."""
        self.stop()
        if self._quiet_s is not None:
            self._timer = asyncio.get_running_loop().call_later(self._quiet_s, self._on_quiet)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _on_quiet(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pong_timeout_s, self._give_up)
        self._ping()
