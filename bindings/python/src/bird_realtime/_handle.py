"""Handles of the library, and the calls that use them."""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any, Callable


class Handle:
    """A handle that any thread may use or end. It is released once no call uses it: by ``end`` or by the last call.

    There is no lock. A signal handler may interrupt a call of its own thread at any point and end the client: a lock
    that the call holds would keep the delivering thread from doing so.
    """

    __slots__ = ("_calls", "_ended_status", "_release", "_value")

    def __init__(self, value: c_void_p | int, release: Callable[[Any], object] | None = None) -> None:
        self._value = value
        # Emptied by the one who releases it.
        self._release = [] if release is None else [release]
        # One object for each call: what Ctrl-C leaves here keeps the handle from being released, but never has it
        # released too early, as a counter could.
        self._calls: set[object] = set()
        self._ended_status: int | None = None

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """The status of a function with this handle; after ``end`` the one given there, and nothing is called."""
        calls, this_call = self._calls, object()
        try:
            calls.add(this_call)
            # Looked at only now: who ends it notes that first, and looks at the calls then.
            if self._ended_status is not None:
                return self._ended_status
            return function(self._value, *arguments)
        finally:
            calls.discard(this_call)
            if self._ended_status is not None and not calls:
                self._release_once()

    def end(self, status: int, *, at_once: bool = False) -> None:
        """Later calls have this status. at_once: releases it whoever seems to use it (those threads are not here)."""
        self._ended_status = status
        if at_once or not self._calls:
            self._release_once()

    def _release_once(self) -> None:
        try:
            release = self._release.pop()
        except IndexError:
            return
        release(self._value)
