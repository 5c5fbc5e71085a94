"""The WebSocket side with a raw client."""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Callable

import pytest
from raw_client import TIMEOUT_S, RawClient
from websockets.exceptions import ConnectionClosed

from bird_realtime.edge import signing
from bird_realtime.testing import App, EdgeConfig, EdgeServer

Connect = Callable[[], RawClient]
StartEdge = Callable[[EdgeConfig], EdgeServer]

NOOR = {"member_id": "m_7", "member_info": {"name": "Noor"}}


def test_handshake(edge: EdgeServer) -> None:
    edge.set_activity_timeout(7)
    ids = set()
    for _ in range(3):
        with RawClient(edge) as client:
            data = client.receive_handshake()
            assert data.keys() == {"connection_id", "activity_timeout"}
            assert data["activity_timeout"] == 7
            assert re.fullmatch(r"[0-9]+\.[0-9]+", data["connection_id"])
            ids.add(data["connection_id"])
    assert len(ids) == 3


def test_no_extension_is_accepted(edge: EdgeServer) -> None:
    with RawClient(edge) as client:
        assert client.socket.response is not None
        assert "sec-websocket-extensions" not in client.socket.response.headers


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/app/pk_unknown?protocol=7", 4001),
        ("/app/pk_local", 4008),
        ("/app/pk_local?protocol=6", 4007),
        ("/app/pk_local?protocol=seven", 4007),
        ("/app", 4005),
        ("/app/pk_local/more?protocol=7", 4005),
        ("/elsewhere?protocol=7", 4005),
        ("/bird/auth?protocol=7", 4005),
    ],
)
def test_refusals_are_close_frames(edge: EdgeServer, path: str, code: int) -> None:
    with RawClient(edge, f"ws://{edge.ws_host}{path}") as client:
        assert client.receive_close()[0] == code
    assert edge.journal("opened") == []


def test_suspended_app_and_quota(edge: EdgeServer, connect: Connect) -> None:
    edge.update_app(connection_quota=1)
    first = connect()
    with RawClient(edge) as second:
        assert second.receive_close()[0] == 4004
    edge.update_app(status="suspended")
    with RawClient(edge) as third:
        assert third.receive_close()[0] == 4003
    assert first.frames_so_far() == []


def test_the_key_in_the_path_is_decoded(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(app_key="my key/é"))
    assert edge.ws_url.endswith("/app/my%20key%2F%C3%A9?protocol=7")
    with RawClient.greeted(edge) as client:
        assert client.subscribe("private-a")["event"] == "bird_internal:subscription_succeeded"


def test_public_subscribe_publish_unsubscribe(edge: EdgeServer, connect: Connect) -> None:
    client, other = connect(), connect()
    assert client.subscribe("orders") == {
        "event": "bird_internal:subscription_succeeded",
        "channel": "orders",
        "data": {},
    }
    other.subscribe("orders")
    edge.publish("x", ["orders"], {"a": 1}, exclude_connection_id=other.connection_id)
    assert client.receive() == {"event": "x", "channel": "orders", "data": {"a": 1}}
    assert other.frames_so_far() == []
    client.send("bird:unsubscribe", {"channel": "orders"})
    assert client.frames_so_far() == []
    edge.publish("x", ["orders"])
    assert other.receive() == {"event": "x", "channel": "orders"}
    assert client.frames_so_far() == []


def test_payload_text_is_relayed_exactly(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    data_json = '{"n":1.10,"big":123456789012345678901234567890.5,"e":1e400,"u":"\\u00e9\\ud83d\\ude00"}'
    edge.publish("x", ["orders"], data_json=data_json)
    assert json.loads(client.receive_text())["data"] == data_json


def test_presence(connect: Connect) -> None:
    noor, ivo = connect(), connect()
    noor.subscribe("presence-lobby", NOOR)
    success = ivo.subscribe("presence-lobby", {"member_id": "m_8", "member_info": {"name": "Ivo"}})
    assert success["data"] == {
        "presence": {"ids": ["m_7", "m_8"], "hash": {"m_7": {"name": "Noor"}, "m_8": {"name": "Ivo"}}, "count": 2}
    }
    assert noor.receive() == {
        "event": "bird_internal:member_added",
        "channel": "presence-lobby",
        "data": {"member_id": "m_8", "member_info": {"name": "Ivo"}},
    }
    ivo.socket.close()
    assert noor.receive() == {
        "event": "bird_internal:member_removed",
        "channel": "presence-lobby",
        "data": {"member_id": "m_8"},
    }


def test_errors_name_no_channel_and_keep_the_socket_open(connect: Connect) -> None:
    client = connect()
    client.send("bird:subscribe", {"channel": "private-a", "auth": "pk_local:00"})
    frame = client.receive()
    assert frame.keys() == {"event", "data"}
    assert frame["event"] == "bird:error"
    assert frame["data"]["code"] is None
    client.socket.send("{not json")
    assert client.receive()["event"] == "bird:error"
    client.socket.send(b"\x00binary")
    assert client.receive()["event"] == "bird:error"
    assert client.frames_so_far() == []


def test_signin_and_member_events(edge: EdgeServer, connect: Connect) -> None:
    client, stranger = connect(), connect()
    assert client.subscribe("#server-to-user-m_7")["event"] == "bird:error"
    success = client.sign_in({**NOOR, "watchlist": ["m_8"]})
    assert success["event"] == "bird:signin_success"
    assert json.loads(success["data"]["member_data"]) == NOOR
    assert client.subscribe("#server-to-user-m_7")["event"] == "bird_internal:subscription_succeeded"
    edge.send_to_member("m_7", "parcel.left", {"parcel": "P-55"})
    assert client.receive() == {
        "event": "parcel.left",
        "channel": "#server-to-user-m_7",
        "data": {"parcel": "P-55"},
    }
    assert client.sign_in({"member_id": "m_9"})["event"] == "bird:error"
    edge.disconnect_member("m_7")
    assert client.receive_close() == (4009, "Member connections terminated")
    assert stranger.frames_so_far() == []


def test_client_events(edge: EdgeServer, connect: Connect) -> None:
    sender, receiver = connect(), connect()
    for client in (sender, receiver):
        client.subscribe("private-a")
    for _ in range(11):
        sender.send("client-cursor", {"x": 3}, channel="private-a")
    # Ten in a second; a slow machine may spread them over two, and then none is refused.
    refused = sender.frames_so_far()
    assert all(frame["data"]["code"] == 4301 for frame in refused)
    frames = receiver.frames_so_far()
    assert len(frames) + len(refused) == 11
    assert len(frames) >= 10
    assert frames[0] == {"event": "client-cursor", "channel": "private-a", "data": {"x": 3}}
    edge.update_app(client_events=False)
    sender.send("client-cursor", channel="private-a")
    assert sender.receive()["event"] == "bird:error"


def test_client_events_name_their_sender_on_presence_channels(edge: EdgeServer, connect: Connect) -> None:
    sender, receiver = connect(), connect()
    for number, client in enumerate((sender, receiver), 7):
        client.subscribe("presence-a", {"member_id": f"m_{number}"})
        client.subscribe("private-a")
    sender.frames_so_far()
    for channel in ("presence-a", "private-a"):
        sender.send("client-x", 1, channel=channel)
    first, second = receiver.frames_so_far()
    assert first == {"event": "client-x", "channel": "presence-a", "data": 1, "member_id": "m_7"}
    assert second == {"event": "client-x", "channel": "private-a", "data": 1}


def test_half_of_a_surrogate_pair_is_refused(edge: EdgeServer, connect: Connect) -> None:
    sender, receiver = connect(), connect()
    for client in (sender, receiver):
        client.subscribe("private-a")
    for message in (
        r'{"event":"client-x","channel":"private-a","data":"\ud83d"}',
        r'{"event":"client-\ude00","channel":"private-a"}',
    ):
        sender.socket.send(message)
        refused = sender.receive()
        assert refused["event"] == "bird:error"
        assert "half of a surrogate pair" in refused["data"]["message"]
    assert receiver.frames_so_far() == []


def test_an_encrypted_envelope_is_relayed_untouched(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("private-encrypted-vault")
    envelope = {"nonce": "yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f", "ciphertext": "ZsVrf2IwwZ7hid4OFUsRts5/9SAMBBk="}
    edge.publish("balance.set", ["private-encrypted-vault"], envelope)
    assert client.receive()["data"] == envelope


def test_authorized_connections(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(app=App(authorized_connections=True), authorized_deadline_s=2.0))
    with RawClient.greeted(edge) as idle, RawClient.greeted(edge) as proven:
        proven.sign_in(NOOR)
        idle.subscribe("orders")
        assert idle.receive_close() == (4009, "not authorized within timeout")
        assert proven.frames_so_far() == []


def test_connections_from_before_the_flag_are_left_alone(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(authorized_deadline_s=0.2))
    with RawClient.greeted(edge) as older:
        edge.update_app(authorized_connections=True)
        with RawClient.greeted(edge) as newer:
            assert newer.receive_close()[0] == 4009
        assert older.frames_so_far() == []


def test_the_edge_pings_a_quiet_client_and_gives_up(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(ping_after_s=0.2, pong_timeout_s=1.5))
    with RawClient.greeted(edge) as client:
        assert client.receive() == {"event": "bird:ping"}
        client.send("bird:pong")
        assert client.receive() == {"event": "bird:ping"}
        assert client.receive_close()[0] == 4201


def test_websocket_pings_are_answered(connect: Connect) -> None:
    client = connect()
    assert client.socket.ping(b"alive").wait(TIMEOUT_S)


@pytest.mark.parametrize("code", [1000, 4001, 4200])
def test_the_close_of_a_client_is_answered_with_its_code(edge: EdgeServer, connect: Connect, code: int) -> None:
    client = connect()
    client.socket.close(code, "done")
    with pytest.raises(ConnectionClosed) as closed:
        client.socket.recv(timeout=TIMEOUT_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == code
    edge.wait_for(lambda: edge.journal("closed"), what="the close")
    assert edge.journal("closed")[0].text == f"{code} done"


def test_a_message_over_the_limit_closes_with_1009(connect: Connect) -> None:
    client = connect()
    client.socket.send("x" * (128 * 1024 + 1))
    assert client.receive_close()[0] == 1009


def test_invalid_utf8_closes_with_1007(connect: Connect) -> None:
    client = connect()
    client.socket.send(b"\xff\xfe", text=True)
    assert client.receive_close()[0] == 1007


def test_a_plain_get_of_the_app_path_asks_for_an_upgrade(edge: EdgeServer) -> None:
    assert _exchange(edge, f"GET /app/{edge.app_key} HTTP/1.0\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.0 426 ")


def test_an_upgrade_without_a_key_is_a_bad_request(edge: EdgeServer) -> None:
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    request = f"GET /app/{edge.app_key}?protocol=7 HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n"
    assert _exchange(edge, request).startswith(b"HTTP/1.1 400 ")


def test_no_frame_follows_a_close_frame(edge: EdgeServer) -> None:
    """A client that neither reads nor answers in the meantime finds the close frame as the last thing."""
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    with socket.create_connection((edge.host, edge.port), TIMEOUT_S) as stream:
        stream.sendall(
            f"GET /app/{edge.app_key}?protocol=7 HTTP/1.1\r\nHost: localhost\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        edge.wait_for_connections(1)
        edge.close_connections(4200, "go")
        # Requests and a ping behind the close: nothing of this is answered.
        stream.sendall(_masked(0x1, b'{"event":"bird:ping"}') + _masked(0x9, b"ping"))
        edge.wait_for(lambda: edge.journal("received"), what="the late request")
        stream.sendall(_masked(0x8, struct.pack("!H", 4200)))
        received = b""
        while chunk := stream.recv(65536):
            received += chunk
    assert received.endswith(b"\x88\x04" + struct.pack("!H", 4200) + b"go")
    assert received.count(b"bird:") == 1


def test_a_slow_reader_is_closed_with_4100(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(outbox_limit_bytes=1_000_000))
    with RawClient.greeted(edge) as slow, RawClient.greeted(edge) as quick:
        for client in (slow, quick):
            client.subscribe("orders")
        filler = "x" * 500_000
        # The socket buffers of both kernels' ends fill up first, then the queue of the edge.
        for _ in range(200):
            if len(edge.connections()) == 1:
                break
            edge.inject_text(filler, slow.connection_id)
        assert [connection.connection_id for connection in edge.connections()] == [quick.connection_id]
        with pytest.raises(ConnectionClosed):
            list(slow.socket)
        assert slow.socket.close_code == 4100
        assert quick.frames_so_far() == []


def test_a_revoked_key_dies_at_once(edge: EdgeServer, connect: Connect) -> None:
    edge.add_key("second", "other secret")
    client = connect()
    signed = signing.channel_string(client.connection_id, "private-a")
    auth = signing.auth_string("second", "other secret", signed)
    edge.revoke_key("second")
    client.send("bird:subscribe", {"channel": "private-a", "auth": auth})
    assert client.receive()["event"] == "bird:error"
    edge.add_key("second", "other secret")
    client.send("bird:subscribe", {"channel": "private-a", "auth": auth})
    assert client.receive()["event"] == "bird_internal:subscription_succeeded"


def _exchange(edge: EdgeServer, request: str) -> bytes:
    """The start of the answer to a request that is written as it is."""
    with socket.create_connection((edge.host, edge.port), TIMEOUT_S) as stream:
        stream.sendall(request.encode())
        return stream.recv(65536)


def _masked(opcode: int, payload: bytes) -> bytes:
    """A client frame with a mask of zeros, which leaves the payload readable."""
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + b"\0\0\0\0" + payload
