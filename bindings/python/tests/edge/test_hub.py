"""The rules of the hub at chosen times, without a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hubs import CONFIG, error, hub_with, sent, sign_in, subscribe

from bird_realtime.edge import signing
from bird_realtime.edge.config import App, EdgeConfig
from bird_realtime.edge.frames import Frame, Request
from bird_realtime.edge.hub import Close, CountLater, Send


def test_client_events_are_limited_to_ten_in_any_second() -> None:
    hub = hub_with(2, client_events=True)
    subscribe(hub, "1.1", "private-a")
    subscribe(hub, "2.1", "private-a")
    request = Request("client-x", "private-a", "{}")
    for tenth in range(10):
        assert sent(hub.handle("1.1", request, tenth / 10)) == [(("2.1",), "client-x")]
    assert error(hub.handle("1.1", request, 0.99))["code"] == 4301
    assert sent(hub.handle("1.1", request, 1.0)) == [(("2.1",), "client-x")]
    assert error(hub.handle("1.1", request, 1.05))["code"] == 4301
    assert sent(hub.handle("2.1", request, 1.05)) == [(("1.1",), "client-x")]


@pytest.mark.parametrize(
    ("app", "event", "channel", "data"),
    [
        ({}, "client-x", "private-a", "1"),
        ({"client_events": True}, "client-x", "public", "1"),
        ({"client_events": True}, "client-x", "private-encrypted-a", "1"),
        ({"client_events": True}, "client-x", "private-b", "1"),
        ({"client_events": True}, "client-x", None, "1"),
        ({"client_events": True}, "other", "private-a", "1"),
        ({"client_events": True}, "bird:nonsense", "private-a", "1"),
        ({"client_events": True}, "client-" + "x" * 194, "private-a", "1"),
        ({"client_events": True}, "client-x", "private-a", json.dumps("x" * 10_239)),
    ],
)
def test_refused_client_events(app: dict[str, Any], event: str, channel: str | None, data: str) -> None:
    hub = hub_with(2, **app)
    for connection_id in ("1.1", "2.1"):
        for name in ("private-a", "public", "private-encrypted-a"):
            subscribe(hub, connection_id, name)
    assert error(hub.handle("1.1", Request(event, channel, data), 0.0))["code"] is None


def test_the_largest_client_event_passes() -> None:
    hub = hub_with(2, client_events=True)
    subscribe(hub, "1.1", "private-a")
    subscribe(hub, "2.1", "private-a")
    data = json.dumps("x" * 10_238)
    effects = hub.handle("1.1", Request("client-x", "private-a", data), 0.0)
    assert effects == [Send(("2.1",), Frame("client-x", "private-a", data))]


@pytest.mark.parametrize(("channel", "sender"), [("presence-a", (("user_id", "m_7"),)), ("private-a", ())])
def test_client_events_can_name_their_sender(channel: str, sender: tuple[tuple[str, str], ...]) -> None:
    hub = hub_with(2, config=EdgeConfig(client_event_sender_key="user_id"), client_events=True)
    for number, member_id in (("1", "m_7"), ("2", "m_8")):
        subscribe(hub, f"{number}.1", channel, {"member_id": member_id} if channel == "presence-a" else None)
    effects = hub.handle("1.1", Request("client-x", channel, "1"), 0.0)
    assert effects == [Send(("2.1",), Frame("client-x", channel, "1", sender))]


def test_presence_follows_members_not_connections() -> None:
    hub = hub_with(4)
    noor, ivo = {"member_id": "m_7", "member_info": {"name": "Noor"}}, {"member_id": "m_8"}
    assert sent(subscribe(hub, "1.1", "presence-a", noor)) == [(("1.1",), "bird_internal:subscription_succeeded")]
    assert sent(subscribe(hub, "2.1", "presence-a", noor)) == [(("2.1",), "bird_internal:subscription_succeeded")]
    effects = subscribe(hub, "3.1", "presence-a", ivo)
    assert sent(effects) == [
        (("3.1",), "bird_internal:subscription_succeeded"),
        (("1.1", "2.1"), "bird_internal:member_added"),
    ]
    assert isinstance(effects[0], Send)
    assert json.loads(effects[0].frame.data or "") == {
        "presence": {"ids": ["m_7", "m_8"], "hash": {"m_7": {"name": "Noor"}, "m_8": None}, "count": 2}
    }
    assert hub.leave("1.1", 0.0) == []
    assert hub.leave("2.1", 0.0) == [
        Send(("3.1",), Frame("bird_internal:member_removed", "presence-a", '{"member_id":"m_7"}'))
    ]
    assert hub.leave("3.1", 0.0) == []
    assert hub.channel_names() == []


def test_a_numeric_presence_id_becomes_a_string() -> None:
    hub = hub_with(2)
    subscribe(hub, "1.1", "presence-a", {"member_id": 7})
    assert hub.member_ids("presence-a") == ("7",)
    assert sent(subscribe(hub, "2.1", "presence-a", {"member_id": "7"})) == [
        (("2.1",), "bird_internal:subscription_succeeded")
    ]


@pytest.mark.parametrize("member", ["text", [], {}, {"member_id": True}, {"member_id": 1.5}, {"member_id": "a b"}])
def test_bad_presence_members(member: Any) -> None:
    hub = hub_with()
    assert error(subscribe(hub, "1.1", "presence-a", member))["code"] is None
    assert hub.channel_names() == []


def test_presence_limits() -> None:
    config = EdgeConfig(presence_limit_members=1, member_info_limit_bytes=8)
    hub = hub_with(4, config=config)
    error(subscribe(hub, "1.1", "presence-a", {"member_id": "m_1", "member_info": "1234567"}))
    assert len(subscribe(hub, "1.1", "presence-a", {"member_id": "m_1", "member_info": "123456"})) == 1
    error(subscribe(hub, "2.1", "presence-a", {"member_id": "m_2"}))
    assert sent(subscribe(hub, "3.1", "presence-a", {"member_id": "m_1"})) == [
        (("3.1",), "bird_internal:subscription_succeeded")
    ]


def test_strict_and_lenient() -> None:
    hub = hub_with()
    subscribe(hub, "1.1", "orders")
    again = Request("bird:subscribe", None, '{"channel":"orders"}')
    leave = Request("bird:unsubscribe", None, '{"channel":"other"}')
    assert "Existing subscription" in error(hub.handle("1.1", again, 0.0))["message"]
    assert "No current subscription" in error(hub.handle("1.1", leave, 0.0))["message"]
    assert hub.connection_count("orders") == 1
    hub.strict = False
    assert sent(hub.handle("1.1", again, 0.0)) == [(("1.1",), "bird_internal:subscription_succeeded")]
    assert hub.handle("1.1", leave, 0.0) == []
    assert hub.connection_count("orders") == 1


def test_the_member_channel_admits_only_its_member() -> None:
    hub = hub_with(2)
    error(subscribe(hub, "1.1", "#server-to-user-m_7"))
    assert sent(sign_in(hub, "1.1", '{"member_id":"m_7"}')) == [(("1.1",), "bird:signin_success")]
    error(subscribe(hub, "1.1", "#server-to-user-m_8"))
    error(subscribe(hub, "2.1", "#server-to-user-m_7"))
    assert sent(subscribe(hub, "1.1", "#server-to-user-m_7")) == [(("1.1",), "bird_internal:subscription_succeeded")]
    assert hub.send_to_member("m_7", "x", "1") == [Send(("1.1",), Frame("x", "#server-to-user-m_7", "1"))]
    assert hub.send_to_member("m_8", "x", "1") == []


def test_signin() -> None:
    hub = hub_with()
    member_data = '{"member_id":"m_7","member_info":{"n":1.10},"watchlist":["m_8"]}'
    expected = json.dumps({"member_data": '{"member_id":"m_7","member_info":{"n":1.10}}'}, separators=(",", ":"))
    for _ in range(2):
        assert sign_in(hub, "1.1", member_data) == [Send(("1.1",), Frame("bird:signin_success", data=expected))]
    assert "m_7" in error(sign_in(hub, "1.1", '{"member_id":"m_9"}'))["message"]
    assert hub.connections["1.1"].identity == "m_7"


def test_a_presence_signature_is_no_signin() -> None:
    hub = hub_with()
    member_data = '{"member_id":"m_7"}'
    auth = signing.auth_string(
        CONFIG.app_key, CONFIG.app_secret, signing.channel_string("1.1", "presence-a", member_data)
    )
    request = Request("bird:signin", None, json.dumps({"auth": auth, "member_data": member_data}))
    assert "Invalid signature" in error(hub.handle("1.1", request, 0.0))["message"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        '"{}"',
        "{}",
        '{"channel":1}',
        '{"channel":""}',
        '{"channel":"a b"}',
        '{"channel":"private-a"}',
        '{"channel":"private-a","auth":"pk_local:00"}',
        '{"channel":"presence-a","auth":"pk_local:00"}',
        '{"channel":"presence-a","auth":"pk_local:00","member_data":{"member_id":"m"}}',
        '{"channel":"presence-\\ud800","auth":"pk_local:00","member_data":"\\ud800"}',
    ],
)
def test_refused_subscribes(data: str | None) -> None:
    hub = hub_with()
    assert error(hub.handle("1.1", Request("bird:subscribe", None, data), 0.0))["code"] is None
    assert hub.channel_names() == []


def test_tampered_member_data_is_refused() -> None:
    hub = hub_with()
    auth = signing.auth_string(
        CONFIG.app_key, CONFIG.app_secret, signing.channel_string("1.1", "presence-a", '{"member_id":"m_7"}')
    )
    data = {"channel": "presence-a", "auth": auth, "member_data": '{"member_id":"m_8"}'}
    error(hub.handle("1.1", Request("bird:subscribe", None, json.dumps(data)), 0.0))


def test_disconnect_member_closes_identities_only() -> None:
    hub = hub_with(3)
    sign_in(hub, "1.1", '{"member_id":"m_7"}')
    for connection_id in ("1.1", "2.1", "3.1"):
        subscribe(hub, connection_id, "presence-a", {"member_id": f"m_{'7' if connection_id < '3' else '8'}"})
    assert hub.disconnect_member("m_7", 0.0) == [Close("1.1", 4009, "Member connections terminated")]
    assert list(hub.connections) == ["2.1", "3.1"]
    assert hub.publish("x", ["presence-a"], None, 0.0) == [Send(("2.1", "3.1"), Frame("x", "presence-a"))]
    assert hub.handle("1.1", Request("bird:ping", None, None), 0.0) == []


@pytest.mark.parametrize("channel", ["private-a", "presence-a", "private-encrypted-a"])
def test_a_signed_subscription_authorizes(channel: str) -> None:
    hub = hub_with(2, authorized_connections=True)
    subscribe(hub, "1.1", channel, {"member_id": "m"} if channel == "presence-a" else None)
    subscribe(hub, "2.1", "public")
    assert hub.expire_unauthorized("1.1", 30.0) == []
    assert hub.expire_unauthorized("2.1", 30.0) == [Close("2.1", 4009, "not authorized within timeout")]


def test_a_signin_authorizes_and_the_flag_can_go() -> None:
    hub = hub_with(2, authorized_connections=True)
    sign_in(hub, "1.1", '{"member_id":"m_7"}')
    assert hub.expire_unauthorized("1.1", 30.0) == []
    hub.app = App()
    assert hub.expire_unauthorized("2.1", 30.0) == []


def test_connection_counts() -> None:
    hub = hub_with(2, connection_counting=True, connection_count_events=True)
    count = "bird_internal:connection_count"
    assert sent(subscribe(hub, "1.1", "orders"))[1:] == [(("1.1",), count)]
    assert sent(subscribe(hub, "2.1", "orders"))[1:] == [(("1.1", "2.1"), count)]
    assert hub.leave("1.1", 0.0) == [Send(("2.1",), Frame(count, "orders", '{"connection_count":1}'))]
    assert len(subscribe(hub, "2.1", "presence-a", {"member_id": "m"})) == 1
    sign_in(hub, "2.1", '{"member_id":"m_7"}')
    assert len(subscribe(hub, "2.1", "#server-to-user-m_7")) == 1


def test_connection_counts_of_large_channels_are_throttled() -> None:
    hub = hub_with(103, connection_counting=True, connection_count_events=True)
    for number in range(1, 101):
        assert len(subscribe(hub, f"{number}.1", "orders", now=1.0)) == 2
    assert subscribe(hub, "101.1", "orders", now=2.0)[1:] == [CountLater("orders", 4.0)]
    assert subscribe(hub, "102.1", "orders", now=3.0)[1:] == []
    late = hub.send_count("orders", 6.0)
    assert isinstance(late[0], Send)
    assert late[0].frame.data == '{"connection_count":102}'
    assert subscribe(hub, "103.1", "orders", now=7.0)[1:] == [CountLater("orders", 4.0)]
    for number in range(1, 104):
        hub.leave(f"{number}.1", 8.0)
    assert hub.send_count("orders", 11.0) == []


def test_publish_reaches_each_distinct_channel_once_and_skips_the_excluded() -> None:
    hub = hub_with(2)
    for connection_id in ("1.1", "2.1"):
        for channel in ("a", "b"):
            subscribe(hub, connection_id, channel)
    assert hub.publish("x", ["a", "b", "a", "empty"], "1", 0.0, exclude="1.1") == [
        Send(("2.1",), Frame("x", "a", "1")),
        Send(("2.1",), Frame("x", "b", "1")),
    ]


@pytest.mark.parametrize(
    ("app", "key", "protocol", "code"),
    [
        ({}, None, "7", 4005),
        ({}, "other", "7", 4001),
        ({}, "pk_local", None, 4008),
        ({}, "pk_local", "6", 4007),
        ({}, "pk_local", "", 4007),
        ({"status": "suspended"}, "pk_local", "7", 4003),
        ({"connection_quota": 1}, "pk_local", "7", 4004),
    ],
)
def test_refusals(app: dict[str, Any], key: str | None, protocol: str | None, code: int) -> None:
    refusal = hub_with(**app).refusal(key, protocol)
    assert refusal is not None
    assert refusal[0] == code
    assert hub_with().refusal("pk_local", "7") is None
