"""Cache channels, without a socket."""

from __future__ import annotations

import pytest
from hubs import hub_with, sent, subscribe

from bird_realtime.edge import event_cache
from bird_realtime.edge.config import EdgeConfig
from bird_realtime.edge.frames import Frame, Request
from bird_realtime.edge.hub import Send

SUCCESS, MISS = "bird_internal:subscription_succeeded", "bird:cache_miss"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cache-prices", True),
        ("private-cache-prices", True),
        ("presence-cache-prices", True),
        ("private-encrypted-cache-prices", True),
        ("prices-cache-", False),
        ("cacheprices", False),
        ("private-encrypted-prices", False),
        ("cache", False),
        ("#server-to-user-cache-1", False),
    ],
)
def test_the_names_of_cache_channels(name: str, expected: bool) -> None:
    assert event_cache.is_cache_channel(name) is expected


@pytest.mark.parametrize("name", ["cache-a", "private-cache-a", "private-encrypted-cache-a"])
def test_the_last_event_follows_the_success(name: str) -> None:
    hub = hub_with(2)
    assert sent(subscribe(hub, "1.1", name)) == [(("1.1",), SUCCESS), (("1.1",), MISS)]
    for number in ("1", "2"):
        hub.publish("x", [name], number, 0.0, exclude="1.1")
    assert subscribe(hub, "2.1", name)[1:] == [Send(("2.1",), Frame("x", name, "2"))]


def test_it_comes_before_everything_else() -> None:
    hub = hub_with(2, connection_counting=True, connection_count_events=True)
    events = [event for _, event in sent(subscribe(hub, "1.1", "cache-a"))]
    assert events == [SUCCESS, MISS, "bird_internal:connection_count"]
    subscribe(hub, "1.1", "presence-cache-a", {"member_id": "m_7"})
    events = [event for _, event in sent(subscribe(hub, "2.1", "presence-cache-a", {"member_id": "m_8"}))]
    assert events == [SUCCESS, MISS, "bird_internal:member_added"]


def test_events_are_kept_without_subscribers_and_for_a_time() -> None:
    hub = hub_with(3, config=EdgeConfig(cache_ttl_s=60))
    hub.publish("x", ["cache-a", "a"], None, 100.0)
    assert subscribe(hub, "1.1", "cache-a", now=159.9)[1:] == [Send(("1.1",), Frame("x", "cache-a"))]
    assert subscribe(hub, "2.1", "cache-a", now=160.0)[1:] == [Send(("2.1",), Frame(MISS, "cache-a"))]
    assert sent(subscribe(hub, "3.1", "a", now=100.0)) == [(("3.1",), SUCCESS)]


def test_client_events_are_not_kept() -> None:
    hub = hub_with(2, client_events=True)
    subscribe(hub, "1.1", "private-cache-a")
    assert hub.handle("1.1", Request("client-x", "private-cache-a", "1"), 0.0) == []
    assert sent(subscribe(hub, "2.1", "private-cache-a"))[1:] == [(("2.1",), MISS)]


def test_the_oldest_of_too_many_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_cache, "CACHED_CHANNELS_MAX", 2)
    hub = hub_with(1)
    for name in ("cache-a", "cache-b", "cache-a", "cache-c"):
        hub.publish("x", [name], None, 0.0)
    assert [sent(subscribe(hub, "1.1", f"cache-{name}"))[1][1] for name in "abc"] == ["x", MISS, "x"]


def test_clear() -> None:
    hub = hub_with(1)
    hub.publish("x", ["cache-a"], None, 0.0)
    hub.cache.clear()
    assert sent(subscribe(hub, "1.1", "cache-a"))[1] == (("1.1",), MISS)
