"""Records of the connection, of subscriptions and of rosters."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from bird_realtime import (
    BirdRealtime,
    BirdRealtimeError,
    Channel,
    ConnectionFailed,
    DecryptionError,
    DecryptionFailed,
    GaveUp,
    InvalidArgument,
    Member,
    MemberEvent,
    PresenceChannel,
    StateChange,
    SubscriptionFailed,
    SubscriptionSucceeded,
    _abi,
)

from .batches import BatchMaker
from .fake_library import FakeLibrary


def deliver(bird: BirdRealtime, batch: BatchMaker) -> None:
    bird._router.deliver(batch.decoded())


@pytest.fixture
def lobby(bird: BirdRealtime) -> PresenceChannel:
    channel = bird.subscribe("presence-lobby")
    assert isinstance(channel, PresenceChannel)
    return channel


PRESENCE = {"presence": {"ids": ["m_7", 8, "m_9"], "hash": {"m_7": {"name": "Noor"}, "8": [1]}, "count": 3}}
ROSTER = {"m_7": {"name": "Noor"}, "8": [1], "m_9": None}


def test_the_roster_is_what_the_library_says(bird: BirdRealtime, lobby: PresenceChannel) -> None:
    """And not what the payload looks like."""
    seen: list[SubscriptionSucceeded] = []
    lobby.bind("bird:subscription_succeeded", seen.append)
    batch = BatchMaker()
    batch.subscribed(lobby._tag, PRESENCE, "1e2", members={"1e2": None, "b\0": [2]})
    deliver(bird, batch)
    assert seen[0].data == PRESENCE
    assert (seen[0].members, seen[0].my_id) == ({"1e2": None, "b\0": [2]}, "1e2")
    assert (lobby.members, lobby.my_id, lobby.me) == ({"1e2": None, "b\0": [2]}, "1e2", None)
    lobby.members.clear()
    seen[0].members.clear()
    assert len(lobby.members) == 2, "both are copies"


def test_the_roster_is_that_of_the_event(bird: BirdRealtime, lobby: PresenceChannel) -> None:
    seen: list[tuple[str, list[str], Any]] = []
    bird.bind("bird:subscription_succeeded", lambda e: seen.append((e.name, list(e.channel.members), e.my_id)))
    for name in ("bird:member_added", "bird:member_removed"):
        lobby.bind(name, lambda e: seen.append((e.name, list(e.channel.members), e.member)))
    batch = BatchMaker()
    batch.subscribed(lobby._tag, PRESENCE, "m_7", members=ROSTER)
    batch.member(_abi.BIRD_RECORD_MEMBER_ADDED, lobby._tag, "m_10", {"name": "Sol"})
    batch.member(_abi.BIRD_RECORD_MEMBER_REMOVED, lobby._tag, "8", [1])
    batch.member(_abi.BIRD_RECORD_MEMBER_REMOVED, lobby._tag, "nobody")
    deliver(bird, batch)
    assert seen == [
        ("bird:subscription_succeeded", ["m_7", "8", "m_9"], "m_7"),
        ("bird:member_added", ["m_7", "8", "m_9", "m_10"], Member("m_10", {"name": "Sol"})),
        ("bird:member_removed", ["m_7", "m_9", "m_10"], Member("8", [1])),
        ("bird:member_removed", ["m_7", "m_9", "m_10"], Member("nobody", None)),
    ]
    assert (lobby.my_id, lobby.me) == ("m_7", {"name": "Noor"})
    lobby.members.clear()
    assert len(lobby.members) == 3, "members is a copy"


def test_member_event_data(bird: BirdRealtime, lobby: PresenceChannel) -> None:
    seen: list[MemberEvent] = []
    lobby.bind("bird:member_added", seen.append)
    batch = BatchMaker()
    batch.member(_abi.BIRD_RECORD_MEMBER_ADDED, lobby._tag, "m_9", "Sol")
    batch.member(_abi.BIRD_RECORD_MEMBER_ADDED, lobby._tag, "m_9")
    deliver(bird, batch)
    assert [event.data for event in seen] == [
        {"member_id": "m_9", "member_info": "Sol"},
        {"member_id": "m_9", "member_info": None},
    ]
    assert lobby.members == {"m_9": None}, "a known id is overwritten"


def test_subscription_succeeded(bird: BirdRealtime) -> None:
    orders = bird.subscribe("orders")
    seen: list[SubscriptionSucceeded] = []
    orders.bind("bird:subscription_succeeded", seen.append)
    batch = BatchMaker()
    batch.subscribed(orders._tag, {})
    batch.subscribed(orders._tag, {}, is_resubscribe=True, interrupted_ms=1_500)
    deliver(bird, batch)
    assert [(event.is_resubscribe, event.interrupted) for event in seen] == [(False, 0), (True, 1.5)]
    assert (seen[0].data, seen[0].members, seen[0].my_id) == ({}, {}, None)


def test_decryption_failed(bird: BirdRealtime, caplog: pytest.LogCaptureFixture) -> None:
    vault = bird.subscribe("private-encrypted-vault")
    batch = BatchMaker()
    lost = b'{"channel":"private-encrypted-vault","event":"balance.set"}'
    batch.add(
        _abi.BIRD_RECORD_DECRYPTION_ERROR,
        tag=vault._tag,
        event="bird:decryption_error",
        data=lost,
        data_kind=_abi.BIRD_DATA_VALUE,
        detail=_abi.FailureDetail(),
    )
    deliver(bird, batch)
    assert "private-encrypted-vault" in caplog.text, "nothing is lost without a word"
    caplog.clear()
    seen: list[DecryptionFailed] = []
    vault.bind("bird:decryption_error", seen.append)
    bird.bind_global(lambda event: pytest.fail(f"{event} is no application event"))
    deliver(bird, batch)
    assert [event.data["event"] for event in seen] == ["balance.set"]
    assert isinstance(seen[0].error, DecryptionError)
    assert not caplog.text


def test_a_handler_bound_after_the_answer(bird: BirdRealtime, lobby: PresenceChannel) -> None:
    batch = BatchMaker()
    batch.subscribed(lobby._tag, PRESENCE, "m_7", members=ROSTER)
    deliver(bird, batch)
    seen: list[str] = []
    lobby.bind("bird:subscription_error", lambda event: seen.append("not this one"))
    lobby.bind("bird:subscription_succeeded", lambda event: seen.append(event.my_id))
    assert seen == [], "handlers are called by the delivery only"
    lobby.wait_subscribed(5)
    assert seen == ["m_7"], "and a wait includes them"
    deliver(bird, batch)
    assert seen == ["m_7", "m_7"]
    batch = BatchMaker()
    batch.state(2, _abi.BIRD_STATE_UNAVAILABLE)
    deliver(bird, batch)
    lobby.bind("bird:subscription_succeeded", lambda event: seen.append("too early"))
    bird._delivery._deliver_slice(0)
    assert seen == ["m_7", "m_7"]


def test_an_error_for_a_handler_bound_after_it(fake: FakeLibrary, bird: BirdRealtime, lobby: PresenceChannel) -> None:
    batch = BatchMaker()
    batch.add(_abi.BIRD_RECORD_SUBSCRIPTION_ERROR, tag=lobby._tag, detail=_abi.SubscriptionDetail())
    deliver(bird, batch)
    seen: list[object] = []
    lobby.bind("bird:subscription_error", lambda event: seen.append(event.error))
    bird._delivery._deliver_slice(0)
    assert seen == [lobby.error]
    assert bird.subscribe("presence-lobby") is lobby
    assert lobby.error is None, "asked again"
    lobby.bind("bird:subscription_error", seen.append)
    bird._delivery._deliver_slice(0)
    assert len(seen) == 1


def test_a_second_success_reloads_the_roster(bird: BirdRealtime, lobby: PresenceChannel) -> None:
    batch = BatchMaker()
    batch.subscribed(lobby._tag, PRESENCE, "m_7", members=ROSTER)
    batch.subscribed(lobby._tag, {}, "m_8", members={})
    deliver(bird, batch)
    assert (lobby.members, lobby.my_id) == ({}, "m_8")


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        (_abi.BIRD_STATE_CONNECTED, True),
        (_abi.BIRD_STATE_UNAVAILABLE, False),
        (_abi.BIRD_STATE_DISCONNECTED, False),
        (_abi.BIRD_STATE_FAILED, False),
    ],
)
def test_the_roster_goes_with_the_connection(
    bird: BirdRealtime, lobby: PresenceChannel, state: int, kept: bool
) -> None:
    batch = BatchMaker()
    batch.subscribed(lobby._tag, PRESENCE, "m_7", members=ROSTER)
    is_end = state != _abi.BIRD_STATE_CONNECTED
    batch.state(_abi.BIRD_STATE_CONNECTED if is_end else _abi.BIRD_STATE_CONNECTING, state)
    deliver(bird, batch)
    assert (len(lobby.members), lobby.my_id) == ((3, "m_7") if kept else (0, None))


def test_member_records_after_unsubscribe_are_dropped(bird: BirdRealtime, lobby: PresenceChannel) -> None:
    tag = lobby._tag
    lobby.unsubscribe()
    batch = BatchMaker()
    batch.member(_abi.BIRD_RECORD_MEMBER_ADDED, tag, "m_9")
    batch.subscribed(tag, PRESENCE, members=ROSTER)
    deliver(bird, batch)
    assert lobby.members == {}


def test_subscription_error(bird: BirdRealtime, lobby: PresenceChannel, caplog: pytest.LogCaptureFixture) -> None:
    batch = BatchMaker()
    batch.subscribed(lobby._tag, PRESENCE, "m_7", members=ROSTER)
    batch.add(_abi.BIRD_RECORD_SUBSCRIPTION_ERROR, tag=lobby._tag, detail=_abi.SubscriptionDetail(will_retry=True))
    with caplog.at_level(logging.WARNING, "bird_realtime"):
        deliver(bird, batch)
    assert "presence-lobby: status -30" in caplog.text, "an error that no handler takes is logged"
    assert lobby.members == {}
    seen: list[SubscriptionFailed] = []
    lobby.bind("bird:subscription_error", seen.append)
    deliver(bird, batch)
    assert len(seen) == 2, "the one before it was bound, which comes late, and the new one"
    assert seen[1].will_retry
    assert seen[1].error is lobby.error
    assert seen[0].data == {"error": "status -30", "endpoint": "", "status": None}
    batch = BatchMaker()
    batch.subscribed(lobby._tag, PRESENCE, "m_7", members=ROSTER)
    deliver(bird, batch)
    assert lobby.error is None


def test_states(bird: BirdRealtime) -> None:
    seen: list[tuple[str, StateChange]] = []
    for event in ("state_change", "unavailable", "failed", "connecting_in", "connected"):
        bird.connection.bind(event, lambda change, event=event: seen.append((event, change)))
    batch = BatchMaker()
    batch.state(
        _abi.BIRD_STATE_CONNECTED,
        _abi.BIRD_STATE_UNAVAILABLE,
        close_code=4200,
        attempt=1,
        reason=_abi.BIRD_ERR_LOST,
        reason_text=b"gone",
        delay_ms=1_250,
    )
    batch.add(
        _abi.BIRD_RECORD_CONNECTING_IN,
        detail=_abi.StateChangeDetail(previous=3, current=3, delay_ms=1_250, attempt=2, policy=b"staged"),
    )
    batch.state(_abi.BIRD_STATE_CONNECTING, _abi.BIRD_STATE_CONNECTED, connection_id=b"4242.1357")
    batch.state(77, 78)
    deliver(bird, batch)
    lost = StateChange("connected", "unavailable", _abi.BIRD_ERR_LOST, "gone", 4200, 1, 1.25, None)
    assert seen[:2] == [("state_change", lost), ("unavailable", lost)]
    assert (seen[2][0], seen[2][1].delay, seen[2][1].attempt) == ("connecting_in", 1.25, 2)
    assert (lost.policy, seen[2][1].policy) == (None, "staged")
    assert [event for event, _ in seen[3:5]] == ["state_change", "connected"]
    assert (seen[3][1].connection_id, seen[3][1].code, seen[3][1].delay) == ("4242.1357", None, None)
    assert (seen[5][1].previous, seen[5][1].current) == ("state 77", "state 78")


def test_giving_up_is_kept_until_the_next_state(bird: BirdRealtime) -> None:
    batch = BatchMaker()
    batch.state(1, _abi.BIRD_STATE_DISCONNECTED, reason=_abi.BIRD_ERR_GAVE_UP, reason_text=b"gave up after 3 attempts")
    deliver(bird, batch)
    error = bird.connection.error
    assert isinstance(error, GaveUp)
    assert (error.code, error.message) == (None, "gave up after 3 attempts")
    with pytest.raises(GaveUp):
        bird.wait_until("connected", timeout=5)
    with pytest.raises(GaveUp):
        bird.run_forever()
    batch = BatchMaker()
    batch.state(_abi.BIRD_STATE_DISCONNECTED, _abi.BIRD_STATE_CONNECTING)
    deliver(bird, batch)
    assert bird.connection.error is None
    batch = BatchMaker()
    batch.state(_abi.BIRD_STATE_CONNECTING, _abi.BIRD_STATE_DISCONNECTED)
    deliver(bird, batch)
    assert bird.connection.error is None, "the program wanted it"


def test_a_refusal_is_kept_until_the_next_state(bird: BirdRealtime) -> None:
    batch = BatchMaker()
    batch.state(2, _abi.BIRD_STATE_FAILED, close_code=4009, reason=_abi.BIRD_ERR_REFUSED, reason_text=b"terminated")
    deliver(bird, batch)
    error = bird.connection.error
    assert isinstance(error, ConnectionFailed)
    assert (error.code, error.message, error.status) == (4009, "terminated", _abi.BIRD_ERR_REFUSED)
    batch = BatchMaker()
    batch.state(_abi.BIRD_STATE_FAILED, _abi.BIRD_STATE_CONNECTING)
    deliver(bird, batch)
    assert bird.connection.error is None


def test_errors_of_the_connection(bird: BirdRealtime, caplog: pytest.LogCaptureFixture) -> None:
    batch = BatchMaker()
    batch.add(_abi.BIRD_RECORD_ERROR, detail=_abi.FailureDetail())
    batch.add(_abi.BIRD_RECORD_SIGNIN_ERROR, detail=_abi.FailureDetail())
    batch.add(_abi.BIRD_RECORD_CONNECTION_LOST)
    with caplog.at_level(logging.WARNING, "bird_realtime"):
        deliver(bird, batch)
    assert [record.message for record in caplog.records] == [
        "error without a handler: status -40",
        "signin_error without a handler: status -31",
    ]
    seen: list[Any] = []
    for event in ("error", "signin_error", "connection_lost"):
        bird.connection.bind(event, seen.append)
    deliver(bird, batch)
    assert [type(each) for each in seen[:2]] == [type(bird._native.failure(None, s)) for s in (-40, -31)]
    assert seen[2] is None


def test_signed_in(bird: BirdRealtime) -> None:
    seen: list[Member] = []
    bird.connection.bind("signed_in", seen.append)
    batch = BatchMaker()
    batch.member(_abi.BIRD_RECORD_SIGNED_IN, 0, "7.0", {"member_id": 7, "member_info": {"name": "Noor"}})
    deliver(bird, batch)
    assert seen == [Member("7.0", {"name": "Noor"})], "the id is the library's"


def test_a_bad_name_gives_a_failed_channel(fake: FakeLibrary, bird: BirdRealtime) -> None:
    fake.statuses["bird_client_subscribe"] = _abi.BIRD_ERR_NAME
    told: list[object] = []
    bird.connection.bind("error", told.append)
    channel = bird.subscribe("no spaces")
    channel.bind("bird:subscription_error", lambda event: told.append(event.error))
    assert channel.state == "failed"
    assert isinstance(channel.error, InvalidArgument)
    assert told == [], "handlers are called by the delivery only"
    bird._delivery._deliver_slice(0)
    assert told == [channel.error, channel.error]
    assert bird.channels == {}
    with pytest.raises(InvalidArgument):
        channel.trigger("client-x", {})
    with pytest.raises(InvalidArgument):
        channel.wait_subscribed(5)
    with pytest.raises(InvalidArgument):
        next(iter(channel))


def test_other_failures_of_subscribe_are_raised(fake: FakeLibrary, bird: BirdRealtime) -> None:
    fake.statuses["bird_client_subscribe"] = _abi.BIRD_ERR_SYSTEM
    with pytest.raises(BirdRealtimeError, match="status -20"):
        bird.subscribe("orders")
    assert bird.channels == {}
    name: Any = 5
    with pytest.raises(InvalidArgument, match="name must be a str, not int"):
        bird.subscribe(name)


def test_one_channel_per_name(fake: FakeLibrary, bird: BirdRealtime) -> None:
    orders = bird.subscribe("orders")
    assert bird.subscribe("orders") is orders
    assert len(fake.released) == 1, "the second reference was given back"
    assert bird.channels == {"orders": orders}
    assert type(orders) is Channel
    bird.unsubscribe("orders")
    bird.unsubscribe("orders")
    assert orders.state == "unsubscribed"
    assert len(fake.released) == 2
    again = bird.subscribe("orders")
    assert again is not orders
    assert again._tag != orders._tag
