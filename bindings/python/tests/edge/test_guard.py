"""Who may use the edge: programs of this machine, and pages of browsers only where that is harmless or wanted."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest
from raw_client import TIMEOUT_S, RawClient
from websockets.exceptions import InvalidStatus

from bird_realtime.edge.guard import Guard
from bird_realtime.testing import ConfigError, EdgeConfig, EdgeServer

StartEdge = Callable[[EdgeConfig], EdgeServer]

EVERYWHERE = "0.0.0.0"  # noqa: S104
FOREIGN = "http://evil.example"
JSON = {"content-type": "application/json"}


def ask(
    edge: EdgeServer, method: str, path: str, headers: dict[str, str] | None = None, body: str | None = None
) -> tuple[int, Any]:
    """Status and JSON of the answer to a request with exactly these headers beside Host, and maybe another Host."""
    headers = {"Host": edge.ws_host, **(headers or {})}
    connection = http.client.HTTPConnection(edge.host, edge.port, timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_host=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(None if body is None else body.encode())
        response = connection.getresponse()
        return response.status, json.load(response)


# -------------------------------------------------------------------------------------------------- the rule ----


@pytest.mark.parametrize(
    ("options", "host", "is_served"),
    [
        ({}, "127.0.0.1:8080", True),
        ({}, "127.0.0.1", True),
        ({}, "127.8.9.10:1", True),
        ({}, "localhost:9", True),
        ({}, "LOCALHOST.", True),
        ({}, "orders.localhost:9", True),
        ({}, "[::1]:8080", True),
        ({}, "[0:0:0:0:0:0:0:1]", True),
        ({}, "", False),
        ({}, "evil.example:8080", False),
        ({}, "localhost.evil.example", False),
        ({}, "127.0.0.1.evil.example", False),
        ({}, "notlocalhost", False),
        ({}, "192.0.2.7:8080", False),
        ({}, "user@127.0.0.1", False),
        ({}, "127.0.0.1:80:80", False),
        ({}, "127.0.0.1/..", False),
        ({}, "[::1", False),
        ({"host": "box.lan"}, "box.lan:8080", True),
        ({"host": "192.0.2.7"}, "192.0.2.7", True),
        ({"host": "192.0.2.7"}, "192.0.2.8", False),
        ({"host": EVERYWHERE}, "192.0.2.8:1", True),
        ({"host": "::"}, "[2001:db8::1]:1", True),
        ({"host": EVERYWHERE}, "evil.example:1", False),
        ({"allow_hosts": ["Edge", "2001:db8::1"]}, "edge:8080", True),
        ({"allow_hosts": ["Edge", "2001:db8::1"]}, "[2001:db8:0::1]:8080", True),
        ({"allow_hosts": ["edge"]}, "other:8080", False),
    ],
)
def test_hosts(options: dict[str, Any], host: str, is_served: bool) -> None:
    problem = Guard(EdgeConfig(**options)).problem({"host": host})
    assert (problem is None) is is_served
    if problem is not None:
        assert repr(host) in problem
        assert "--allow-host" in problem


@pytest.mark.parametrize(
    ("options", "origin", "is_served"),
    [
        ({}, "http://localhost:3000", True),
        ({}, "https://127.0.0.1", True),
        ({}, "http://[::1]:5173", True),
        ({}, "null", False),
        ({}, "", False),
        ({}, FOREIGN, False),
        ({}, "http://localhost.evil.example", False),
        ({}, "http://evil.example/localhost", False),
        ({}, "chrome-extension://localhost", False),
        ({}, "http://localhost:3000, http://evil.example", False),
        ({"allow_origins": [FOREIGN]}, FOREIGN, True),
        ({"allow_origins": ["HTTP://Evil.Example"]}, FOREIGN, True),
        ({"allow_origins": [FOREIGN]}, "https://evil.example", False),
        ({"allow_origins": [FOREIGN]}, f"{FOREIGN}:81", False),
        ({"allow_origins": ["null"]}, "null", True),
        ({"allow_origins": ["*"]}, "https://any.example", True),
    ],
)
def test_origins(options: dict[str, Any], origin: str, is_served: bool) -> None:
    problem = Guard(EdgeConfig(**options)).problem({"host": "127.0.0.1:1", "origin": origin})
    assert (problem is None) is is_served
    assert problem is None or "--allow-origin" in problem


def test_a_page_of_the_edge_itself() -> None:
    guard = Guard(EdgeConfig(host=EVERYWHERE))
    assert guard.problem({"host": "192.0.2.7:8080", "origin": "http://192.0.2.7:8080"}) is None
    assert guard.problem({"host": "192.0.2.7:8080", "origin": "http://192.0.2.8:8080"}) is not None


@pytest.mark.parametrize("origin", ["evil.example", "http://", "http://evil.example/path", "http://a b", ""])
def test_origins_that_are_none(origin: str) -> None:
    with pytest.raises(ConfigError, match="allow_origin"):
        EdgeConfig(allow_origins=[origin])


@pytest.mark.parametrize("host", ["edge:8080", "", "http://edge", "[::1]"])
def test_hosts_that_are_none(host: str) -> None:
    with pytest.raises(ConfigError, match="allow_host"):
        EdgeConfig(allow_hosts=[host])


# ---------------------------------------------------------------------------------------------- over the wire ----

PATHS = [
    ("GET", "/_edge/journal", None),
    ("GET", "/_edge/", None),
    ("POST", "/_edge/drop_connections", "{}"),
    ("POST", "/bird/auth", '{"connection_id": "1.1", "channel_name": "private-a"}'),
    ("POST", "/bird/auth/member", '{"connection_id": "1.1"}'),
    ("GET", "/v1/realtime/apps/x/channels", None),
    ("GET", "/", None),
]


@pytest.mark.parametrize(("method", "path", "body"), PATHS)
@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"origin": FOREIGN}, {"origin": "null"}])
def test_nothing_is_served_to_foreign_pages(
    edge: EdgeServer, method: str, path: str, body: str | None, headers: dict[str, str]
) -> None:
    with RawClient.greeted(edge):
        before = len(edge.journal())
        status, answer = ask(edge, method, path, {**JSON, **headers}, body)
        assert status == 403
        text = answer["error"]["message"] if path.startswith("/v1/") else answer["error"]
        assert "start the edge with --allow-" in text
        assert len(edge.connections()) == 1
        assert [entry.kind for entry in edge.journal()[before:]] == ["refused"]


def test_upgrades_of_foreign_pages(edge: EdgeServer) -> None:
    with pytest.raises(InvalidStatus) as refused, RawClient(edge, origin=FOREIGN):
        pass
    assert refused.value.response.status_code == 403
    assert b"--allow-origin" in (refused.value.response.body or b"")
    upgrade = {"upgrade": "websocket", "connection": "upgrade", "sec-websocket-version": "13"}
    path = f"/app/{edge.app_key}?protocol=7"
    status, answer = ask(edge, "GET", path, {**upgrade, "sec-websocket-key": "A" * 22 + "==", "Host": "evil.example"})
    assert status == 403
    assert "--allow-host" in answer["error"]
    assert not edge.journal("upgrade")
    with RawClient(edge, origin="http://localhost:3000") as client:
        client.receive_handshake()


def test_an_origin_that_is_allowed(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(allow_origins=[FOREIGN]))
    with RawClient(edge, origin=FOREIGN) as client:
        client.receive_handshake()
    assert ask(edge, "GET", "/_edge/connections", {"origin": FOREIGN})[0] == 200


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "text/json"])
def test_bodies_that_a_page_may_send_without_asking(edge: EdgeServer, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    with RawClient.greeted(edge):
        for path, body in (("/_edge/drop_connections", "{}"), ("/bird/auth/member", '{"connection_id": "1.1"}')):
            status, answer = ask(edge, "POST", path, headers, body)
            assert status == 415
            assert "content-type: application/json" in answer["error"]
        assert len(edge.connections()) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_post_changes_something(edge: EdgeServer, method: str) -> None:
    with RawClient.greeted(edge):
        connection = http.client.HTTPConnection(edge.host, edge.port, timeout=TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request(method, "/_edge/drop_connections", "{}", JSON)
            response = connection.getresponse()
            assert (response.status, response.headers["allow"]) == (405, "POST")
            text = response.read().decode()
        assert method == "HEAD" or "send POST /_edge/drop_connections with the header content-type" in text
        assert len(edge.connections()) == 1


def test_looking_by_get(edge: EdgeServer) -> None:
    with RawClient.greeted(edge) as client:
        status, answer = ask(edge, "GET", "/_edge/journal?kind=opened")
        assert status == 200
        assert [entry["connection_id"] for entry in answer["result"]] == [client.connection_id]
    assert ask(edge, "GET", "/_edge/journal?kinds=opened")[0] == 400
    assert ask(edge, "GET", "/_edge/channels") == (200, {"result": []})
    assert ask(edge, "DELETE", "/_edge/channels")[0] == 405
    assert ask(edge, "POST", "/_edge/channels", {"content-type": "Application/JSON; charset=utf-8"}, "{}")[0] == 200
