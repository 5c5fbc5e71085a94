"""What a client says, frame by frame (Bird protocol §5.1, §8, §14)."""

from __future__ import annotations

import pytest
from conftest import StartClient
from scripted_server import PING, PONG, TEXT, ScriptedServer, dump, event, frame, succeeded


@pytest.mark.c_only("completion records")
def test_subscribe_and_unsubscribe(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 1)  # before the handshake: sent after it
    connection = server.accept()
    connection.establish()
    connection.expect_subscribe("orders")
    client.do("subscribe", "orders", 2)  # pending: no second frame
    connection.send_text(succeeded("orders"))
    client.wait_for("completion", tag=1, status="BIRD_OK")
    client.wait_for("completion", tag=2, status="BIRD_OK")
    client.do("subscribe", "orders", 3)  # subscribed: no frame either
    client.wait_for("completion", tag=3, status="BIRD_OK")
    client.do("unsubscribe", "orders")
    connection.expect({"event": "bird:unsubscribe", "data": {"channel": "orders"}})
    assert connection.is_silent_for(0.2)
    assert len(client.all("completion")) == 3
    assert len(client.all("subscribed")) == 1


@pytest.mark.c_only("completion records")
def test_unsubscribe_before_the_frame_is_silent(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 1)
    client.do("unsubscribe", "orders")
    client.wait_for("completion", tag=1, status="BIRD_ERR_UNSUBSCRIBED")
    connection = server.accept()
    connection.establish()
    assert connection.is_silent_for(0.3)


def test_success_after_unsubscribe_is_nobodys(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.establish()
    connection.expect_subscribe("orders")
    client.do("unsubscribe", "orders")
    client.do("subscribe", "news", 0)
    connection.expect_subscribe("news")  # commands are carried out in their order: the leave is known
    connection.send_text(succeeded("orders"), event("tick", "orders", 1))
    connection.expect({"event": "bird:unsubscribe", "data": {"channel": "orders"}})
    connection.send_text(succeeded("news"))
    client.wait_for("subscribed", channel="news")
    assert not client.all("subscribed", channel="orders")
    assert not client.all("event")


def test_pings_of_both_kinds_are_answered(server: ScriptedServer, connect: StartClient) -> None:
    connect(server)
    connection = server.accept()
    connection.establish()
    connection.send_text({"event": "bird:ping"})
    connection.expect({"event": "bird:pong"})
    connection.send_text({"event": "bird:ping", "data": "{}"})
    connection.expect({"event": "bird:pong"})
    for payload in (b"", b"x", bytes(range(125))):
        connection.send(frame(PING, payload))
        pong = connection.read_frame()
        assert (pong.opcode, pong.payload) == (PONG, payload)
    connection.send(frame(PONG, b"nobody asked"))
    assert connection.is_silent_for(0.2)


def test_client_events(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, authorizer=1)
    client.do("subscribe", "private-orders", 0)
    connection = server.accept()
    connection.establish()
    client.do("grant", client.wait_for("request")["request"], "key:signature")
    connection.join("private-orders", auth="key:signature")
    client.wait_for("subscribed")
    client.do("trigger", "private-orders", "client-x")
    connection.expect({"event": "client-x", "channel": "private-orders"})
    client.do("trigger", "private-orders", "client-é\\u0022", '{"n":12345678901234567890, "é":"\\u00e9"}')
    found = connection.read_frame()
    assert found.json == {
        "event": "client-é\\u0022",
        "channel": "private-orders",
        "data": {"n": 12345678901234567890, "é": "é"},
    }
    assert b'{"n":12345678901234567890, "\xc3\xa9":"\\u00e9"}' in found.payload  # the program's own bytes


@pytest.mark.parametrize("where", ["string", "value", "event"])
def test_half_of_a_surrogate_pair_is_lost_and_told_once(
    server: ScriptedServer, connect: StartClient, where: str
) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.establish()
    connection.join("orders")
    client.wait_for("subscribed")
    half = {
        "string": r'{"event":"moved","channel":"orders","data":"{\"a\":\"\ud83d\"}"}',
        "value": r'{"event":"moved","channel":"orders","data":{"a":"x\uDE00"}}',
        "event": r'{"event":"moved\ud83d","channel":"orders"}',
    }[where].encode()
    elsewhere = rb'{"event":"moved","channel":"elsewhere","data":"\ud83d"}'
    broken = rb'{"event":"moved","channel":"orders","data":"\ud83'
    whole = event("moved", "orders", "\U0001f600")
    connection.send(b"".join(frame(TEXT, each) for each in (elsewhere, broken, half, half, dump(whole))))
    assert client.wait_for("event")["data"] == '"\U0001f600"'
    (told,) = client.all("error")
    assert (told["error"], told["retriable"]) == ("BIRD_ERR_MALFORMED", 1)
    assert " on orders is lost: it has half of a surrogate pair" in told["message"]
    assert client.statistic("frames_malformed") == 4
    assert client.do("state")["state"] == "connected"
    # The next connection tells its first one again.
    connection.close()
    connection = server.accept()
    connection.establish("2.2")
    connection.join("orders")
    connection.send(frame(TEXT, half))
    client.wait_for("error", error="BIRD_ERR_MALFORMED")
    assert len(client.all("error", error="BIRD_ERR_MALFORMED")) == 2


TEXTS = {
    "family of four": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "right to left": "\u202b\u05e9\u05dc\u05d5\u05dd\u202c, \u200f\u0645\u0631\u062d\u0628\u0627",
    "combining and composed": "e\u0301 é \U0001f3f4\U000e0067\U000e0062\U000e007f",
    "last of each length": "\x7f\u07ff\uffff\U0010ffff",
}


@pytest.mark.parametrize("words", TEXTS.values(), ids=TEXTS)
def test_any_text_goes_there_and_back(server: ScriptedServer, connect: StartClient, words: str) -> None:
    """In the payload and in the name of an event, byte for byte."""
    client = connect(server, authorizer=1)
    client.do("subscribe", "private-orders", 0)
    connection = server.accept()
    connection.establish()
    client.do("grant", client.wait_for("request")["request"], "key:sig")
    connection.join("private-orders", auth="key:sig")
    client.wait_for("subscribed")
    name = f"client-{words.replace(' ', '')}"  # a blank ends the word of the test's command
    client.do("trigger", "private-orders", name, dump(words).decode())
    sent = connection.read_frame()
    assert sent.json == {"event": name, "channel": "private-orders", "data": words}
    assert dump(words) in sent.payload
    connection.send(frame(TEXT, sent.payload))
    came = client.wait_for("event")
    assert (came["event"], came["data"]) == (name, words)


@pytest.mark.parametrize("name", ["a_-=@,.;Z9", "x" * 164])
def test_names_go_out_as_they_are(server: ScriptedServer, connect: StartClient, name: str) -> None:
    client = connect(server)
    client.do("subscribe", name, 0)
    connection = server.accept()
    connection.establish()
    connection.join(name)
    client.wait_for("subscribed", channel=name)


def test_frames_are_in_the_order_of_the_calls(server: ScriptedServer, connect: StartClient) -> None:
    """A last event before leaving is the last: fifty times."""
    client = connect(server, authorizer=1)
    connection = server.accept()
    connection.establish()
    for number in range(50):
        client.do("subscribe", "private-orders", 0)
        client.do("grant", client.wait_for("request")["request"], "key:sig")
        connection.join("private-orders", auth="key:sig")
        client.wait_for("subscribed")
        client.do("trigger", "private-orders", "client-x", number)
        client.do("unsubscribe", "private-orders")
        connection.expect({"event": "client-x", "channel": "private-orders", "data": number})
        connection.expect({"event": "bird:unsubscribe", "data": {"channel": "private-orders"}})


def test_client_event_on_its_way_is_not_replayed(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, authorizer=1)
    client.do("subscribe", "private-orders", 0)
    first = server.accept()
    first.establish("1.1")
    client.do("grant", client.wait_for("request")["request"], "key:first")
    first.join("private-orders", auth="key:first")
    client.wait_for("subscribed")
    client.do("trigger", "private-orders", "client-x", "1")
    first.close()
    client.wait_for_state("unavailable")
    assert client.call("trigger", "private-orders", "client-x", "2")["status"] == "BIRD_ERR_NOT_SUBSCRIBED"
    second = server.accept()
    second.establish("2.2")
    client.do("grant", client.wait_for("request")["request"], "key:second")
    second.join("private-orders", auth="key:second")
    client.wait_for("subscribed")
    assert second.is_silent_for(0.2)


@pytest.mark.c_only("completion records")
def test_signin_and_the_member_channel(server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, member_auth_endpoint=f"http://{auth.host}/bird/auth/member")
    client.do("signin", 7, 0)
    client.do("signin", 8, 0)
    connection = server.accept()
    connection.establish("4242.1357")
    post = auth.accept()
    head, body = post.read_post()
    assert head.startswith("POST /bird/auth/member HTTP/1.1\r\n")
    assert body == {"connection_id": "4242.1357"}
    member_data = '{"member_id":"m_7", "member_info":{"name":"Noor"}}'
    post.respond(
        200, '{"auth":"key:sig","member_data":"{\\"member_id\\":\\"m_7\\", \\"member_info\\":{\\"name\\":\\"Noor\\"}}"}'
    )
    connection.expect({"event": "bird:signin", "data": {"auth": "key:sig", "member_data": member_data}})
    connection.send_text({"event": "bird:signin_success", "data": {"member_data": member_data}})
    connection.join("#server-to-user-m_7")
    assert client.wait_for("signed_in")["member_id"] == "m_7"
    client.wait_for("completion", tag=7, operation="signin", status="BIRD_OK", data=member_data)
    client.wait_for("completion", tag=8, operation="signin", status="BIRD_OK")
    connection.send_text(event("parcel.left", "#server-to-user-m_7", {"parcel": "P-55"}))
    parcel = client.wait_for("event", event="parcel.left")
    assert (parcel["channel"], parcel["data"]) == ("#server-to-user-m_7", '{"parcel":"P-55"}')
    assert connection.is_silent_for(0.2)


def test_numeric_member_id_becomes_a_string(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, member_authorizer=1)
    client.do("signin", 1, 0)
    connection = server.accept()
    connection.establish()
    client.do("grant", client.wait_for("request", asks="member")["request"], "key:sig", '{"member_id":7}')
    connection.expect({"event": "bird:signin", "data": {"auth": "key:sig", "member_data": '{"member_id":7}'}})
    connection.send_text({"event": "bird:signin_success", "data": '{"member_data":"{\\"member_id\\":7}"}'})
    connection.expect_subscribe("#server-to-user-7")
    assert client.wait_for("signed_in")["member_id"] == "7"


@pytest.mark.c_only("close() of the package waits differently")
def test_close_says_goodbye_after_what_is_queued(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, authorizer=1)
    client.do("subscribe", "private-orders", 0)
    connection = server.accept()
    connection.establish()
    client.do("grant", client.wait_for("request")["request"], "key:sig")
    connection.join("private-orders", auth="key:sig")
    client.wait_for("subscribed")
    client.do("trigger", "private-orders", "client-x", '"last words"')
    assert client.call("close", 200)["status"] == "BIRD_ERR_TIMEOUT"  # the server does not answer the close
    connection.expect({"event": "client-x", "channel": "private-orders", "data": "last words"})
    connection.expect_close(1000)
    assert client.call("connect")["status"] == "BIRD_ERR_CLOSED"


def test_disconnect_closes_with_1000(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    client.do("disconnect")
    assert client.wait_for_state("disconnected")["reason"] == "BIRD_OK"
    connection.expect_close(1000)
    assert server.is_left_alone_for(0.3)
