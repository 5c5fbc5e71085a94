"""Servers that speak Pusher Channels protocol 7: the same client with the option dialect (Bird protocol §23)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from conftest import StartClient
from script_client import ScriptClient
from scripted_server import CLOSE, DEADLINE_S, Connection, ScriptedServer, dump, event, frame, text

from bird_realtime import BirdRealtime, ConnectionFailed

SOCKET_ID = "4242.1357"
MEMBER = '{"user_id":"m_7","user_info":{"name":"Noor"}}'
IDENTITY = '{"id":"m_7","user_info":{"name":"Noor"},"watchlist":["m_8","m_9"]}'


def established() -> bytes:
    data = {"socket_id": SOCKET_ID, "activity_timeout": 120}
    return text({"event": "pusher:connection_established", "data": dump(data).decode()})


def sent(connection: Connection) -> bytes:
    """The next frame of the client, byte for byte."""
    return connection.read_frame().payload


def succeed(connection: Connection, channel: str, data: object = None) -> None:
    connection.send_text(event("pusher_internal:subscription_succeeded", channel, data or {}))


def answer_form(authorizer: ScriptedServer, form: bytes, status: int = 200, **answer: str) -> None:
    """The authorizer is asked with exactly this body."""
    post = authorizer.accept()
    head = post.read_request().decode()
    assert re.search(r"\r\ncontent-type: application/x-www-form-urlencoded\r\n", head, re.IGNORECASE), head
    assert post.read_raw_body() == form
    post.respond(status, json.dumps(answer))


@pytest.fixture
def client(face: str, server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> ScriptClient:
    calls_handlers = {"consume": "thread"} if face == "c" else {}
    return connect(
        server,
        dialect="pusher",
        auth_endpoint=f"http://{auth.host}/pusher/auth",
        member_auth_endpoint=f"http://{auth.host}/pusher/user-auth",
        **calls_handlers,
    )


@pytest.fixture
def connection(server: ScriptedServer, client: ScriptClient) -> Connection:
    accepted = server.accept()
    accepted.upgrade(established())
    assert accepted.request.startswith(b"GET /app/pk_test?protocol=7&client=bird-realtime&version=")
    assert client.wait_for_state("connected")["connection_id"] == SOCKET_ID
    return accepted


def test_public_channel(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "orders", 0)
    for number, name in enumerate(
        ["pusher:subscription_succeeded", "bird:subscription_succeeded", "bird:connection_count", "pusher:cache_miss"]
    ):
        client.do("bind", number, "orders", name)
    assert sent(connection) == b'{"event":"pusher:subscribe","data":{"channel":"orders","auth":""}}'
    succeed(connection, "orders")
    for number in (0, 1):
        client.wait_for("bound", binding=number)
    connection.send_text(
        event("pusher_internal:subscription_count", "orders", {"subscription_count": 5}),
        {"event": "pusher:cache_miss", "channel": "orders"},
        event("moved", "orders", {"left": 4}),
        event("pusher_internal:unheard_of", "orders", 1),
        event("bird:connection_established", "orders", "an application's own"),
    )
    assert client.wait_for("bound", binding=2)["data"] == '{"subscription_count":5}'
    client.wait_for("bound", binding=3)
    assert client.wait_for("event", event="moved")["data"] == '{"left":4}'
    client.wait_for("event", event="bird:connection_established")
    client.do("unsubscribe", "orders")
    assert sent(connection) == b'{"event":"pusher:unsubscribe","data":{"channel":"orders"}}'


def test_presence(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "presence-lobby", 0)
    answer_form(auth, b"socket_id=4242.1357&channel_name=presence-lobby", auth="pk_test:ab", channel_data=MEMBER)
    assert sent(connection) == (
        b'{"event":"pusher:subscribe","data":{"channel":"presence-lobby","auth":"pk_test:ab","channel_data":'
        b'"{\\"user_id\\":\\"m_7\\",\\"user_info\\":{\\"name\\":\\"Noor\\"}}"}}'
    )
    roster = {"ids": ["m_7", "m_8"], "hash": {"m_7": {"name": "Noor"}, "m_8": None}, "count": 2}
    succeed(connection, "presence-lobby", {"presence": roster})
    subscribed = client.wait_for("subscribed")
    assert (subscribed["my_id"], subscribed["member_count"]) == ("m_7", 2)
    connection.send_text(
        event("pusher_internal:member_added", "presence-lobby", {"user_id": 9, "user_info": {"name": "Sol"}}),
        event("pusher_internal:member_removed", "presence-lobby", {"user_id": "m_8"}),
    )
    assert client.wait_for("member_added")["member_id"] == "9"
    assert client.wait_for("member_removed")["member_id"] == "m_8"
    assert client.do("roster", "presence-lobby")["members"] == "m_7 9"


@pytest.mark.parametrize("ids", [{}, {"ids": None}], ids=["absent", "null"])
def test_roster_without_ids(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, ids: dict[str, None]
) -> None:
    client.do("subscribe", "presence-lobby", 0)
    answer_form(auth, b"socket_id=4242.1357&channel_name=presence-lobby", auth="pk_test:ab", channel_data=MEMBER)
    sent(connection)
    succeed(connection, "presence-lobby", {"presence": {**ids, "hash": {"m_8": None, "m_7": None}, "count": 2}})
    assert client.wait_for("subscribed")["member_count"] == 2
    assert client.do("roster", "presence-lobby")["members"] == "m_7 m_8"


def test_answers_with_the_names_of_bird(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "presence-lobby", 0)
    answer_form(auth, b"socket_id=4242.1357&channel_name=presence-lobby", auth="pk_test:ab", member_data=MEMBER)
    assert connection.read_frame().json["data"]["channel_data"] == MEMBER
    client.do("signin", 5, 0)
    answer_form(auth, b"socket_id=4242.1357", auth="pk_test:cd", member_data=IDENTITY)
    assert connection.read_frame().json["data"]["user_data"] == IDENTITY


def test_unknown_keys_of_an_answer_are_named(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("signin", 5, 0)
    answer_form(auth, b"socket_id=4242.1357", auth="pk_test:cd", user_date=IDENTITY)
    failed = client.wait_for("completion", tag=5)
    assert failed["error"] == "BIRD_ERR_AUTH"
    assert 'has no "user_data" string; unknown keys: "user_date"' in failed["message"]


def test_count_as_a_string(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "orders", 0)
    sent(connection)
    succeed(connection, "orders")
    connection.send_text(event("pusher_internal:subscription_count", "orders", {"subscription_count": "5"}))
    assert client.wait_for("connection_count")["data"] == '{"subscription_count":"5"}'


# What soketi and Pusher send, and what a server may send that says nothing.
@pytest.mark.parametrize(
    ("name", "data", "says", "code"),
    [
        (
            "pusher:subscription_error",
            '{"type":"AuthError","error":"The connection is unauthorized.","status":401}',
            ": AuthError: The connection is unauthorized.",
            401,
        ),
        (
            "pusher_internal:subscription_error",
            '{"type":"LimitReached","error":"too many members","status":4004}',
            ": LimitReached: too many members",
            4004,
        ),
        ("pusher:subscription_error", '{"message":"no","code":4301}', ": no", 4301),
        ("pusher_internal:subscription_error", "{}", ".", 0),
    ],
)
@pytest.mark.parametrize("is_string", [True, False])
def test_refusal_of_a_channel_is_kept_whole(
    client: ScriptClient, connection: Connection, name: str, data: str, says: str, code: int, is_string: bool
) -> None:
    client.do("subscribe", "orders", 0)
    sent(connection)
    connection.send_text({"event": name, "channel": "orders", "data": data if is_string else json.loads(data)})
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"], failed["code"]) == ("BIRD_ERR_DENIED", 0, code)
    assert failed["message"] == f"The edge refused the subscription of orders{says}"
    assert json.loads(failed["data"]) == json.loads(data)
    if is_string:
        assert failed["data"] == data
    # A handler that comes late gets the same.
    client.do("bind", 1, "orders", "pusher:subscription_error")
    assert client.wait_for("bound", binding=1)["data"] == failed["data"]


def test_only_200_is_a_grant(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "private-ledger", 0)
    answer_form(auth, b"socket_id=4242.1357&channel_name=private-ledger", 201, auth="pk_test:ab")
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["http_status"], failed["will_retry"]) == ("BIRD_ERR_AUTH", 201, 0)
    assert connection.is_silent_for(0.1)


def test_signin_member_channel_and_watchlist(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("watch")
    client.do("signin", 5, 0)
    answer_form(auth, b"socket_id=4242.1357", auth="pk_test:cd", user_data=IDENTITY)
    quoted = dump(IDENTITY)
    assert sent(connection) == b'{"event":"pusher:signin","data":{"auth":"pk_test:cd","user_data":' + quoted + b"}}"
    connection.send_text({"event": "pusher:signin_success", "data": dump({"user_data": IDENTITY}).decode()})
    assert sent(connection) == b'{"event":"pusher:subscribe","data":{"channel":"#server-to-user-m_7","auth":""}}'
    assert client.wait_for("signed_in")["member_id"] == "m_7"
    client.wait_for("completion", tag=5, status="BIRD_OK")
    watched = {"events": [{"name": "online", "user_ids": ["m_8"]}, {"name": "offline", "user_ids": ["m_9"]}]}
    connection.send_text({"event": "pusher_internal:watchlist_events", "data": dump(watched).decode()})
    assert client.wait_for("watched", event="online")["data"] == '["m_8"]'
    assert client.wait_for("watched", event="offline")["data"] == '["m_9"]'
    succeed(connection, "#server-to-user-m_7")
    connection.send_text(event("parcel.left", "#server-to-user-m_7", {"parcel": "P-55"}))
    assert client.wait_for("event", event="parcel.left")["data"] == '{"parcel":"P-55"}'


def test_client_events(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "presence-lobby", 0)
    answer_form(auth, b"socket_id=4242.1357&channel_name=presence-lobby", auth="pk_test:ab", channel_data=MEMBER)
    sent(connection)
    succeed(connection, "presence-lobby", {"presence": {"ids": [], "hash": {}, "count": 0}})
    client.wait_for("subscribed")
    client.do("trigger", "presence-lobby", "client-cursor", '{"x":3}')
    assert sent(connection) == b'{"event":"client-cursor","channel":"presence-lobby","data":{"x":3}}'
    # The sender may stand anywhere, be a number, or be missing; and only a client event has one.
    cursor = event("client-cursor", "presence-lobby", {"x": 4})
    connection.send_text(
        {**cursor, "user_id": "m_8"},
        {"user_id": 8, **cursor},
        {**cursor, "user_id": 'm_é\0"', "event": 'client-é/"'},
        cursor,
        {**cursor, "user_id": "m_8"},
        {**cursor, "user_id": None},
        {**event("moved", "presence-lobby", {"x": 4}), "user_id": "m_8"},
    )
    client.wait_for("event", event="moved")
    came = client.all("event")
    assert [each["sender"] for each in came] == ["m_8", "8", 'm_é\0"', "", "m_8", "", ""]
    assert {each["data"] for each in came} == {'{"x":4}'}
    assert came[2]["event"] == 'client-é/"'


def test_pings(client: ScriptClient, connection: Connection) -> None:
    connection.send_text({"event": "pusher:ping", "data": {}})
    assert sent(connection) == b'{"event":"pusher:pong","data":{}}'


def test_silence_is_met_with_a_ping(server: ScriptedServer, connect: StartClient) -> None:
    connect(server, dialect="pusher", activity_timeout_ms=100)
    accepted = server.accept()
    accepted.upgrade(established())
    assert sent(accepted) == b'{"event":"pusher:ping","data":{}}'


def test_error_frame_is_the_answer_to_the_only_one_that_waits(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "orders", 0)
    sent(connection)
    connection.send_text({"event": "pusher:error", "data": {"code": None, "message": "Invalid signature"}})
    assert client.wait_for("error")["message"] == "Invalid signature"
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_DENIED", 0)


def test_leaving_before_the_success_waits_for_it(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "orders", 0)
    sent(connection)
    client.do("unsubscribe", "orders")
    connection.send_text({"event": "pusher:ping", "data": {}})
    assert sent(connection) == b'{"event":"pusher:pong","data":{}}'
    succeed(connection, "orders")
    assert sent(connection) == b'{"event":"pusher:unsubscribe","data":{"channel":"orders"}}'


@pytest.mark.parametrize("code", [4000, 4001, 4300])
def test_refusal(server: ScriptedServer, client: ScriptClient, connection: Connection, code: int) -> None:
    connection.send_close(code, "no")
    refused = client.wait_for_state("failed")
    assert refused["close_code"] == code
    assert server.is_left_alone_for(0.3)


# How servers refuse an attempt before the handshake (Bird protocol §23.5), and what they do with the connection then.
REFUSALS: dict[str, tuple[dict[str, object], Callable[[Connection], None]]] = {
    "ipe": ({"code": 4001, "message": "Could not found an app with the given key"}, lambda end: end.reset()),
    "ipe, TLS only": ({"code": 4000, "message": "Application only accepts SSL connections"}, lambda end: end.close()),
    "slanger": ({"code": 4001, "message": "Could not find app by key nope"}, lambda end: end.send(frame(CLOSE, b""))),
    "reverb": ({"code": 4001, "message": "Application does not exist"}, lambda end: end.send_close(1000)),
    "disabled, and left open": ({"code": 4003, "message": "Application disabled"}, lambda end: None),
    "soketi": ({"code": 4001, "message": "App key nope does not exist."}, lambda end: end.send_close(4001, "no app")),
}


@pytest.mark.parametrize("of", REFUSALS)
@pytest.mark.parametrize("is_stringified", [False, True])
def test_an_error_before_the_handshake_is_final_as_its_code_says(
    server: ScriptedServer, client: ScriptClient, of: str, is_stringified: bool
) -> None:
    error, end = REFUSALS[of]
    client.do("subscribe", "orders", 0)
    accepted = server.accept()
    data = dump(error).decode() if is_stringified else error
    accepted.upgrade(text({"event": "pusher:error", "data": data}))
    end(accepted)
    told = client.wait_for("error")
    assert (told["error"], told["code"], told["message"]) == ("BIRD_ERR_REFUSED", error["code"], error["message"])
    refused = client.wait_for_state("failed")
    assert (refused["reason"], refused["close_code"]) == ("BIRD_ERR_REFUSED", error["code"])
    assert server.is_left_alone_for(0.3)
    assert len(client.all("error")) == 1


@pytest.mark.parametrize(("code", "least_ms", "most_ms"), [(4100, 100, 100), (4200, 0, 0)])
def test_an_error_before_the_handshake_may_ask_for_another_attempt(
    server: ScriptedServer, client: ScriptClient, code: int, least_ms: int, most_ms: int
) -> None:
    accepted = server.accept()
    accepted.upgrade(text({"event": "pusher:error", "data": {"code": code, "message": "not now"}}))
    accepted.expect_close(1000)
    told = client.wait_for("error")
    assert (told["error"], told["code"], told["message"]) == ("BIRD_ERR_SERVER", code, "not now")
    lost = client.wait_for_state("unavailable")
    assert (lost["reason"], lost["close_code"]) == ("BIRD_ERR_LOST", code)
    assert least_ms <= lost["delay_ms"] <= most_ms
    server.accept().upgrade(established())
    client.wait_for_state("connected")


def test_an_error_without_such_a_code_does_not_end_an_attempt(server: ScriptedServer, client: ScriptClient) -> None:
    accepted = server.accept()
    accepted.upgrade(text({"event": "pusher:error", "data": {"code": None, "message": "a hiccup"}}))
    assert client.wait_for("error")["message"] == "a hiccup"
    accepted.send(established())
    client.wait_for_state("connected")


def test_who_waits_for_a_subscription_hears_of_the_refusal(server: ScriptedServer) -> None:
    with BirdRealtime("nope", dialect="pusher", ws_host=server.host, allow_insecure=True) as bird:
        channel = bird.subscribe("orders")
        accepted = server.accept()
        accepted.upgrade(text({"event": "pusher:error", "data": {"code": 4001, "message": "no such app"}}))
        accepted.reset()
        with pytest.raises(ConnectionFailed, match="no such app") as refused:
            channel.wait_subscribed(DEADLINE_S)
        assert refused.value.code == 4001
        assert bird.connection.state == "failed"


@pytest.mark.parametrize("code", [1000, 4100, 4200])
def test_other_closes_are_followed_by_an_attempt(
    server: ScriptedServer, client: ScriptClient, connection: Connection, code: int
) -> None:
    connection.send_close(code, "later")
    client.wait_for_state("unavailable")
    server.accept().upgrade(established())
    client.wait_for_state("connected")


def test_server_of_the_other_protocol(server: ScriptedServer, client: ScriptClient) -> None:
    accepted = server.accept()
    accepted.upgrade(text({"event": "pusher:connection_established", "data": '{"connection_id":"1.1"}'}))
    failed = client.wait_for("error")
    assert "socket_id" in failed["message"]
    accepted.expect_close(4001)
    client.wait_for_state("failed")
