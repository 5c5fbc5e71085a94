from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bird_realtime import BirdRealtime, _native

from .fake_library import FakeLibrary

# A shell that runs the tests in the background has them ignore SIGINT, and their programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """The library of clients created in this test."""
    library = FakeLibrary()
    monkeypatch.setattr(_native, "library", lambda: library)
    return library


@pytest.fixture
def make_bird(fake: FakeLibrary) -> Iterator[Callable[..., BirdRealtime]]:
    """Creates clients on the fake library, closed after the test."""
    made: list[BirdRealtime] = []

    def make(**options: Any) -> BirdRealtime:
        made.append(BirdRealtime("pk_test", region="us1", **options))
        return made[-1]

    yield make
    for bird in made:
        bird.close()


@pytest.fixture
def bird(make_bird: Callable[..., BirdRealtime]) -> BirdRealtime:
    """A client without a thread: what is delivered to it is delivered by the waiting call of the test."""
    return make_bird(thread=False)
