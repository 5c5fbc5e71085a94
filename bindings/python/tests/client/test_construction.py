"""A client whose making fails at some step leaves nothing of the steps before."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from bird_realtime import BirdRealtime, BirdRealtimeError, _abi, _native, delivery

from .fake_library import FakeLibrary

#: what ends something, or only says something, cannot be refused
UNDOING = ("_destroy", "_release", "_free", "_message", "_close", "_wake")


class OneRefusal:
    """The library, which refuses one call of the thread that made this."""

    def __init__(self, fake: FakeLibrary, nth: int) -> None:
        self._fake = fake
        self._thread = threading.get_ident()
        self._left = nth
        self.made: list[str] = []

    @property
    def has_refused(self) -> bool:
        return self._left <= 0

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._fake, name)
        if name.endswith(UNDOING) or name.startswith("bird_error"):
            return function

        def call(*arguments: Any) -> Any:
            if threading.get_ident() == self._thread:
                self._left -= 1
                if self._left == 0:
                    return _abi.BIRD_ERR_SYSTEM
            result = function(*arguments)
            if name in ("bird_queue_create", "bird_client_create"):
                self.made.append(name.split("_")[1])
            return result

        return call


@pytest.mark.parametrize("has_thread", [True, False])
def test_each_refused_call_is_undone(monkeypatch: pytest.MonkeyPatch, has_thread: bool) -> None:
    refused = 0
    while True:
        fake = FakeLibrary()
        library = OneRefusal(fake, refused + 1)
        monkeypatch.setattr(_native, "library", lambda library=library: library)
        try:
            bird = BirdRealtime("pk_test", region="us1", auth_headers={"X-Team": "a"}, thread=has_thread)
        except BirdRealtimeError as error:
            seen = error
        else:
            assert not library.has_refused
            bird.close()
            break
        assert seen.status == _abi.BIRD_ERR_SYSTEM
        assert sorted(fake.destroyed) == sorted(library.made)
        refused += 1
    assert refused > 6
    assert sorted(fake.destroyed) == ["client", "queue"]


def test_without_a_thread_there_is_no_client(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    living = set(delivery._living)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        BirdRealtime("pk_test", region="us1")
    assert sorted(fake.destroyed) == ["client", "queue"]
    assert set(delivery._living) == living
