"""The REST API byte by byte; `test_server_sdk.py` has the official SDK speak to it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from raw_client import TIMEOUT_S, RawClient

from bird_realtime.testing import EdgeConfig, EdgeServer

Connect = Callable[[], RawClient]
StartEdge = Callable[[EdgeConfig], EdgeServer]


class Http:
    """One connection to the REST API with good credentials unless told otherwise."""

    def __init__(self, edge: EdgeServer) -> None:
        self._edge = edge
        self.connection = http.client.HTTPConnection(edge.host, edge.port, timeout=TIMEOUT_S)

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *exc: object) -> None:
        self.connection.close()

    def call(
        self, method: str, path: str, body: Any = None, *, app_id: str | None = None, **headers: str | None
    ) -> tuple[int, Any]:
        """Status and JSON body of the answer. `path` is relative to the app; a header of None is left out."""
        credentials = {
            "authorization": "Bearer bk_eu1_local",
            "x-realtime-key": self._edge.app_key,
            "x-realtime-secret": self._edge.app_secret,
        }
        named = {**credentials, **{name.replace("_", "-"): value for name, value in headers.items()}}
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request(
            method,
            f"/v1/realtime/apps/{app_id or self._edge.app_id}{path}",
            payload,
            {name: value for name, value in named.items() if value is not None},
        )
        response = self.connection.getresponse()
        text = response.read()
        assert response.getheader("x-request-id")
        return response.status, json.loads(text) if text else None

    def publish(self, body: Any, **headers: str | None) -> tuple[int, Any]:
        return self.call("POST", "/events", body, **headers)


@pytest.fixture
def rest(edge: EdgeServer) -> Iterator[Http]:
    with Http(edge) as client:
        yield client


HALF = r'"\ud83d"'


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/events", '{"event":"x","channels":["orders"],"data":%s}', "data"),
        ("/events", '{"event":"x","channels":["orders"],"data":{"a":[%s]}}', "data"),
        ("/events", '{"event":"x","channels":["orders"],"data":{%s:1}}', "data"),
        ("/events", '{"event":%s,"channels":["orders"]}', "event"),
        ("/events", '{"event":"x","channels":[%s]}', "channels"),
        (
            "/batch-events",
            '{"events":[{"event":"x","channel":"a"},{"event":"x","channel":"a","data":%s}]}',
            "events[1].data",
        ),
        ("/members/m_7/events", '{"event":"x","data":%s}', "data"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused(rest: Http, connect: Connect, path: str, body: str, param: str) -> None:
    client = connect()
    client.subscribe("orders")
    for half in (HALF, r'"\ude00"', r'"\uD83Dx\uDE00"'):
        error = error_of(rest.call("POST", path, (body % half).encode()), 422, "validation_error")
        assert error["details"][0]["param"] == param
        assert "half of a surrogate pair" in error["message"]
    assert client.frames_so_far() == []
    assert rest.publish(rb'{"event":"x","channels":["orders"],"data":"\ud83d\ude00"}')[0] == 200
    assert client.receive()["data"] == "\U0001f600"


def error_of(answer: tuple[int, Any], status: int, type_: str) -> dict[str, Any]:
    assert answer[0] == status, answer
    error: dict[str, Any] = answer[1]["error"]
    assert error["type"] == type_
    assert {"code", "name", "message", "doc_url", "request_id"} <= error.keys()
    return error


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": None},
        {"authorization": "Basic eDp5"},
        {"authorization": "Bearer "},
        {"x_realtime_key": None},
        {"x_realtime_key": "pk_other"},
        {"x_realtime_secret": None},
        {"x_realtime_secret": "wrong"},
    ],
)
def test_bad_credentials(rest: Http, headers: dict[str, str | None]) -> None:
    error_of(rest.publish({"event": "x", "channels": ["a"]}, **headers), 401, "auth_error")


def test_a_configured_api_key_is_the_only_one(start_edge: StartEdge) -> None:
    with Http(start_edge(EdgeConfig(api_key="bk_eu1_mine"))) as client:
        error_of(client.call("GET", "/channels"), 401, "auth_error")
        assert client.call("GET", "/channels", authorization="Bearer bk_eu1_mine") == (200, {"data": []})


def test_unknown_apps_and_paths(rest: Http) -> None:
    error_of(rest.call("GET", "/channels", app_id="rap_11111111111111111111111111"), 404, "not_found_error")
    for method, path in (("GET", "/events"), ("POST", "/channels"), ("POST", "/members/m"), ("PUT", "/events")):
        error_of(rest.call(method, path, b""), 404, "not_found_error")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", "body"),
        (b"\xff", "body"),
        (b"[]", "body"),
        ({"channels": ["a"]}, "event"),
        ({"event": "", "channels": ["a"]}, "event"),
        ({"event": 1, "channels": ["a"]}, "event"),
        ({"event": "bird:x", "channels": ["a"]}, "event"),
        ({"event": "bird_internal:x", "channels": ["a"]}, "event"),
        ({"event": "e" * 201, "channels": ["a"]}, "event"),
        ({"event": "x"}, "channels"),
        ({"event": "x", "channels": "a"}, "channels"),
        ({"event": "x", "channels": []}, "channels"),
        ({"event": "x", "channels": ["a"] * 101}, "channels"),
        ({"event": "x", "channels": ["a", "b c"]}, "channels[1]"),
        ({"event": "x", "channels": ["#server-to-user-m"]}, "channels[0]"),
        ({"event": "x", "channels": ["a", "private-encrypted-b"]}, "channels[1]"),
        ({"event": "x", "channels": ["a"], "data": "x" * 10_239}, "data"),
        ({"event": "x", "channels": ["a"], "exclude_connection_id": ""}, "exclude_connection_id"),
    ],
)
def test_invalid_publishes(rest: Http, body: Any, param: str) -> None:
    error = error_of(rest.publish(body), 422, "validation_error")
    assert [detail["param"] for detail in error["details"]] == [param]


@pytest.mark.parametrize("include", [["x"], "member_count", [1], [["member_count"]]])
def test_bad_include(rest: Http, include: Any) -> None:
    error_of(rest.publish({"event": "x", "channels": ["a"], "include": include}), 400, "bad_request_error")


def test_include_needs_counting(rest: Http, edge: EdgeServer) -> None:
    edge.update_app(connection_counting=False)
    body = {"event": "x", "channels": ["a"], "include": ["connection_count"]}
    error_of(rest.publish(body), 400, "bad_request_error")
    error_of(rest.call("GET", "/channels?include=connection_count"), 400, "bad_request_error")


def test_payload_text_arrives_exactly(rest: Http, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    assert rest.publish(b'{"event":"x","channels":["orders"],"data" : {"n":1.10, "e":1e400}}') == (200, {})
    assert json.loads(client.receive_text())["data"] == '{"n":1.10, "e":1e400}'
    rest.publish({"event": "x", "channels": ["orders"], "data": "x" * 10_238})
    assert client.receive()["data"] == "x" * 10_238


def test_a_batch_is_delivered_whole_or_not_at_all(rest: Http, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    good = {"event": "x", "channel": "orders"}
    for bad in ({"event": "x"}, {"event": "x", "channel": "a b"}, {"event": "bird:x", "channel": "a"}, 1):
        error_of(rest.call("POST", "/batch-events", {"events": [good, bad]}), 422, "validation_error")
    too_few_or_many: list[Any] = [[], [good] * 11, {}, None]
    for events in too_few_or_many:
        error_of(rest.call("POST", "/batch-events", {"events": events}), 422, "validation_error")
    assert client.frames_so_far() == []
    assert rest.call("POST", "/batch-events", {"events": [good] * 10}) == (200, {})
    assert len(client.frames_so_far()) == 10


def test_segments_are_split_before_they_are_decoded(rest: Http, connect: Connect) -> None:
    client = connect()
    client.subscribe("presence-lobby@x", {"member_id": "m:7+b"})
    client.sign_in({"member_id": "m:7+b"})
    client.subscribe("#server-to-user-m:7+b")
    assert rest.call("GET", "/channels/presence-lobby%40x/members") == (200, {"members": [{"member_id": "m:7+b"}]})
    assert rest.call("POST", "/members/m%3A7%2Bb/events", {"event": "x"}) == (204, None)
    assert client.receive() == {"event": "x", "channel": "#server-to-user-m:7+b"}
    # An encoded slash belongs to the name, and makes it an illegal one.
    error_of(rest.call("GET", "/channels/a%2Fmembers"), 400, "bad_request_error")
    error_of(rest.call("POST", "/members/a%2Fb/disconnect"), 400, "bad_request_error")
    error_of(rest.call("GET", "/channels/%ff"), 400, "bad_request_error")


def test_lists_and_lookups(rest: Http, connect: Connect) -> None:
    noor, ivo = connect(), connect()
    noor.sign_in({"member_id": "m_7"})
    noor.subscribe("#server-to-user-m_7")
    for client, member_id in ((noor, "m_7"), (ivo, "m_8")):
        client.subscribe("presence-lobby", {"member_id": member_id})
        client.subscribe("orders")
    assert rest.call("GET", "/channels") == (200, {"data": [{"name": "orders"}, {"name": "presence-lobby"}]})
    counted = {"name": "presence-lobby", "member_count": 2, "connection_count": 2}
    query = "prefix=presence-&include=member_count&include=connection_count"
    assert rest.call("GET", f"/channels?{query}") == (200, {"data": [counted]})
    error_of(rest.call("GET", "/channels?include=member_count"), 400, "bad_request_error")
    assert rest.call("GET", "/channels/presence-lobby?include=member_count") == (
        200,
        {"occupied": True, "member_count": 2},
    )
    assert rest.call("GET", "/channels/empty?include=connection_count") == (200, {"occupied": False})
    error_of(rest.call("GET", "/channels/orders?include=member_count"), 400, "bad_request_error")
    error_of(rest.call("GET", "/channels/orders/members"), 400, "bad_request_error")
    error_of(rest.call("GET", "/channels/%23server-to-user-m_7"), 400, "bad_request_error")


def test_disconnect_takes_no_body(rest: Http, connect: Connect) -> None:
    client = connect()
    client.sign_in({"member_id": "m_7"})
    assert rest.call("POST", "/members/m_7/disconnect") == (204, None)
    assert client.receive_close() == (4009, "Member connections terminated")
    assert rest.call("POST", "/members/m_7/disconnect") == (204, None)


def test_the_same_key_replays_the_first_answer(rest: Http, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    body = {"event": "x", "channels": ["orders"], "include": ["connection_count"]}
    first = rest.publish(body, idempotency_key="k")
    assert first == (200, {"data": [{"name": "orders", "connection_count": 1}]})
    client.send("bird:unsubscribe", {"channel": "orders"})
    assert len(client.frames_so_far()) == 1
    client.subscribe("orders")
    connect().subscribe("orders")
    assert rest.publish(body, idempotency_key="k") == first
    assert client.frames_so_far() == []
    other_body = error_of(rest.publish({**body, "event": "y"}, idempotency_key="k"), 409, "conflict_error")
    other_path = error_of(rest.call("POST", "/members/m/events", body, idempotency_key="k"), 409, "conflict_error")
    assert (other_body["code"], other_path["code"]) == ("E01005", "E01005")


def test_a_refused_request_gives_its_key_back(rest: Http) -> None:
    error_of(rest.publish({"event": "x"}, idempotency_key="k"), 422, "validation_error")
    assert rest.publish({"event": "x", "channels": ["a"]}, idempotency_key="k") == (200, {})


def test_a_request_in_progress_refuses_its_twin(rest: Http, edge: EdgeServer) -> None:
    edge.fail_http("rest", hang=True, times=1)
    body = {"event": "x", "channels": ["a"]}

    def hang() -> None:
        with Http(edge) as twin, pytest.raises((http.client.HTTPException, OSError)):
            twin.publish(body, idempotency_key="k")

    hanging = threading.Thread(target=hang)
    hanging.start()
    edge.wait_for(lambda: edge.journal("rest"), what="the first request")
    answer = rest.publish(body, idempotency_key="k")
    assert error_of(answer, 409, "conflict_error")["code"] == "E01004"
    edge.stop()
    hanging.join(TIMEOUT_S)
    assert not hanging.is_alive()


def test_a_large_body_is_refused(rest: Http) -> None:
    error_of(rest.publish(b" " * (1024 * 1024 + 1)), 413, "payload_too_large_error")
