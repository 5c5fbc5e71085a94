"""Records of watched members, and handlers that come late."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bird_realtime import BirdRealtime, Channel, _abi
from bird_realtime.watchlist import WATCHED_MEMBERS_MAX

from .batches import BatchMaker


def deliver(bird: BirdRealtime, batch: BatchMaker) -> None:
    bird._router.deliver(batch.decoded())


def told(batch: BatchMaker, status: str, *ids: str) -> None:
    data = json.dumps(ids).encode()
    batch.add(_abi.BIRD_RECORD_WATCHLIST, event=status, data=data, data_kind=_abi.BIRD_DATA_VALUE)


@pytest.fixture
def seen(bird: BirdRealtime) -> list[Any]:
    return []


def bind(bird: BirdRealtime, seen: list[Any], note: str = "") -> None:
    for status in ("online", "offline", "away"):
        bird.member.watchlist.bind(status, lambda ids, status=status: seen.append((note + status, ids)))


def test_handlers_get_ids(bird: BirdRealtime, seen: list[Any]) -> None:
    bind(bird, seen)
    batch = BatchMaker()
    told(batch, "online", "m_8", "m_9")
    told(batch, "offline", "m_1")
    told(batch, "away", "m_8")
    told(batch, "unknown", "m_8")
    deliver(bird, batch)
    assert seen == [("online", ["m_8", "m_9"]), ("offline", ["m_1"]), ("away", ["m_8"])]
    assert (bird.member.watchlist.online, bird.member.watchlist.offline) == (["m_8", "m_9"], ["m_1"])


def test_the_list_is_that_of_the_event(bird: BirdRealtime, seen: list[Any]) -> None:
    bird.member.watchlist.bind("online", lambda ids: seen.append(bird.member.watchlist.online))
    batch = BatchMaker()
    told(batch, "online", "m_8")
    told(batch, "offline", "m_8")
    told(batch, "online", "m_9")
    deliver(bird, batch)
    assert seen == [["m_8"], ["m_9"]]


def test_unbind(bird: BirdRealtime, seen: list[Any]) -> None:
    watchlist = bird.member.watchlist
    watchlist.bind("online", seen.append)
    watchlist.bind("offline", seen.append)
    watchlist.unbind("online", seen.append)
    batch = BatchMaker()
    told(batch, "online", "m_8")
    told(batch, "offline", "m_8")
    deliver(bird, batch)
    assert seen == [["m_8"]]
    watchlist.unbind()
    deliver(bird, batch)
    assert seen == [["m_8"]]


def test_a_late_handler_gets_who_is_there(bird: BirdRealtime, seen: list[Any]) -> None:
    batch = BatchMaker()
    told(batch, "online", "m_8", "m_9")
    told(batch, "offline", "m_9")
    deliver(bird, batch)
    bind(bird, seen)
    assert seen == [], "handlers are called by the delivery only"
    bird._delivery._deliver_slice(0)
    assert seen == [("online", ["m_8"]), ("offline", ["m_9"])]
    batch = BatchMaker()
    told(batch, "online", "m_9")
    deliver(bird, batch)
    assert seen[2:] == [("online", ["m_9"])]


def test_a_late_handler_gets_how_it_was_before_what_comes_next(bird: BirdRealtime, seen: list[Any]) -> None:
    batch = BatchMaker()
    told(batch, "online", "m_8")
    deliver(bird, batch)
    bind(bird, seen)
    batch = BatchMaker()
    told(batch, "offline", "m_8")
    deliver(bird, batch)
    bird._delivery._deliver_slice(0)
    assert seen == [("online", ["m_8"]), ("offline", ["m_8"])]


@pytest.mark.parametrize("ends", ["signin", "drop"])
def test_a_list_ends_with_its_signin(bird: BirdRealtime, seen: list[Any], ends: str) -> None:
    batch = BatchMaker()
    told(batch, "online", "m_8")
    if ends == "signin":
        batch.member(_abi.BIRD_RECORD_SIGNED_IN, 0, "m_7", {"member_id": "m_7"})
    else:
        batch.state(_abi.BIRD_STATE_CONNECTED, _abi.BIRD_STATE_UNAVAILABLE)
    deliver(bird, batch)
    bind(bird, seen)
    bird._delivery._deliver_slice(0)
    assert seen == []
    assert bird.member.watchlist.online == []


def test_what_is_told_late_comes_before_later_events(bird: BirdRealtime) -> None:
    orders: Channel = bird.subscribe("orders")
    batch = BatchMaker()
    batch.subscribed(orders._tag, {})
    deliver(bird, batch)
    seen: list[str] = []

    def late(event: object) -> None:
        orders.bind("moved", lambda event: seen.append("moved"))
        orders.bind("bird:subscription_succeeded", lambda event: seen.append("succeeded"))
        orders.unbind("go")
        seen.append("bound")

    orders.bind("go", late)
    batch = BatchMaker()
    batch.event(orders._tag, "go")
    batch.event(orders._tag, "moved")
    batch.subscribed(orders._tag, {})
    deliver(bird, batch)
    assert seen == ["bound", "succeeded", "moved", "succeeded"]


def test_who_is_unbound_in_time_is_told_nothing_late(bird: BirdRealtime) -> None:
    orders = bird.subscribe("orders")
    batch = BatchMaker()
    batch.subscribed(orders._tag, {})
    deliver(bird, batch)
    seen: list[object] = []
    orders.bind("bird:subscription_succeeded", seen.append).unbind("bird:subscription_succeeded")
    bird._delivery._deliver_slice(0)
    assert seen == []


def test_no_more_members_are_kept_than_the_library_keeps(bird: BirdRealtime, seen: list[Any]) -> None:
    many = [f"m_{number}" for number in range(WATCHED_MEMBERS_MAX)]
    batch = BatchMaker()
    told(batch, "online", *many)
    told(batch, "online", "one more", "m_0")
    told(batch, "offline", "m_1", "two more")
    deliver(bird, batch)
    assert bird.member.watchlist.online == [each for each in many if each != "m_1"]
    assert bird.member.watchlist.offline == ["m_1"]
