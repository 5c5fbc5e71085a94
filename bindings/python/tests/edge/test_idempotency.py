from __future__ import annotations

import pytest

from bird_realtime.edge.idempotency import LIMIT_ENTRIES, WINDOW_S, IdempotencyCache, InProgress, KeyReused
from bird_realtime.edge.replies import Reply

REPLY = Reply(204)


def test_claim_complete_replay() -> None:
    cache = IdempotencyCache()
    assert cache.claim("k", b"a", 0.0) is None
    with pytest.raises(InProgress):
        cache.claim("k", b"a", 1.0)
    cache.complete("k", REPLY)
    assert cache.claim("k", b"a", WINDOW_S - 1) is REPLY
    with pytest.raises(KeyReused):
        cache.claim("k", b"b", 1.0)
    assert cache.claim("k", b"b", WINDOW_S) is None


def test_release() -> None:
    cache = IdempotencyCache()
    cache.claim("k", b"a", 0.0)
    cache.release("k")
    assert cache.claim("k", b"b", 0.0) is None


def test_the_oldest_goes_first() -> None:
    cache = IdempotencyCache()
    for number in range(LIMIT_ENTRIES + 1):
        cache.claim(str(number), b"", 0.0)
        cache.complete(str(number), REPLY)
    assert cache.claim("1", b"", 0.0) is REPLY
    assert cache.claim("0", b"", 0.0) is None
