from __future__ import annotations

import base64
import inspect
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from raw_client import TIMEOUT_S, RawClient

from bird_realtime.edge.controls import Controls
from bird_realtime.testing import EdgeServer

Connect = Callable[[], RawClient]


def control(edge: EdgeServer, name: str, body: bytes | None = None, **arguments: Any) -> Any:
    """The result of a control, or the text of its error."""
    payload = json.dumps(arguments).encode() if body is None else body
    url, headers = f"{edge.base_url}/_edge/{name}", {"content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, payload, headers), timeout=TIMEOUT_S) as response:  # noqa: S310
            return json.load(response)["result"]
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)["error"]


def test_every_control_is_listed(edge: EdgeServer) -> None:
    with urllib.request.urlopen(f"{edge.base_url}/_edge/", timeout=TIMEOUT_S) as response:  # noqa: S310
        listed = json.load(response)["result"]
    methods = {name for name, _ in inspect.getmembers(Controls, inspect.isfunction) if not name.startswith("_")}
    assert listed.keys() == methods
    assert listed["withhold"]["arguments"]["channel"] == "str | None = None"
    assert listed["withhold"]["summary"]


def test_controls_over_http(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    (connection,) = control(edge, "connections")
    assert connection["connection_id"] == client.connection_id
    assert connection["channels"] == ["orders"]
    assert control(edge, "channels") == [{"name": "orders", "connection_count": 1, "member_ids": []}]
    assert control(edge, "publish", event="x", channels=["orders"], data={"a": [None]}) is None
    assert client.receive()["data"] == {"a": [None]}
    assert control(edge, "inject_binary", data=base64.b64encode(b"\x00").decode()) == 1
    assert client.socket.recv(timeout=TIMEOUT_S) == b"\x00"
    assert control(edge, "delay", answer="pong", delay_s=0, times=1) is None
    assert control(edge, "fail_http", target="auth", status=500, headers={"x": "y"}, retry_after=None) is None
    assert [entry["kind"] for entry in control(edge, "journal", kind="opened")] == ["opened"]
    assert control(edge, "close_connections", code=4009, reason="bye") == 1
    assert client.receive_close() == (4009, "bye")


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("nothing", {}, "no control nothing"),
        ("_ids", {}, "no control _ids"),
        ("withhold", {}, "answer: this argument is needed"),
        ("withhold", {"answer": "pong", "more": 1}, "more: no such argument"),
        ("withhold", {"answer": 1}, "answer: expected str"),
        ("withhold", {"answer": "pong", "times": True}, "times: expected int"),
        ("delay", {"answer": "pong", "delay_s": "1"}, "delay_s: expected float"),
        ("set_strict", {"on": 1}, "on: expected bool"),
        ("inject_raw", {"data": "%"}, "data: expected base64"),
        ("publish", {"event": "x", "channels": "a"}, "channels: expected"),
        ("publish", {"event": "x", "channels": [1]}, "channels: expected"),
        ("fail_http", {"target": "auth", "headers": {"x": 1}}, "headers: expected"),
        ("withhold", {"answer": "everything"}, "answer: 'everything' is none of"),
        ("update_app", {"status": "gone"}, "status: must be one of"),
    ],
)
def test_wrong_use(edge: EdgeServer, name: str, arguments: dict[str, Any], problem: str) -> None:
    assert problem in control(edge, name, **arguments)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff"])
def test_bad_bodies(edge: EdgeServer, body: bytes) -> None:
    assert "body" in control(edge, "connections", body)
