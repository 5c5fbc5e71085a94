"""The auth backend and the faults that a test can give it."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from raw_client import TIMEOUT_S, RawClient

from bird_realtime.edge import signing
from bird_realtime.testing import EdgeConfig, EdgeServer

Connect = Callable[[], RawClient]
StartEdge = Callable[[EdgeConfig], EdgeServer]

CHANNEL = {"connection_id": "4242.1357", "channel_name": "private-a"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


def post(url: str, body: Any, *, member: str | None = None, timeout_s: float = TIMEOUT_S) -> tuple[int, str, Any]:
    """Status, text and headers of the answer; redirects are not followed."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    if member is not None:
        headers["authorization"] = f"Bearer {member}"
    request = urllib.request.Request(url, payload, headers)  # noqa: S310
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_s) as response:
            return response.status, response.read().decode(), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def authorized(edge: EdgeServer, body: Any, member: str | None = None) -> Any:
    status, text, _ = post(edge.auth_endpoint, body, member=member)
    assert status == 200, text
    return json.loads(text)


def test_what_it_signs_is_accepted(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    for channel in ("private-a", "presence-a", "private-encrypted-a"):
        body = {"connection_id": client.connection_id, "channel_name": channel}
        answer = authorized(edge, body, member="m_7")
        answer.pop("shared_secret", None)
        client.send("bird:subscribe", {"channel": channel, **answer})
        assert client.receive()["event"] == "bird_internal:subscription_succeeded"
    _, text, _ = post(edge.member_auth_endpoint, {"connection_id": client.connection_id}, member="m_7")
    client.send("bird:signin", json.loads(text))
    assert client.receive()["event"] == "bird:signin_success"
    assert edge.connections()[0].member_id == "m_7"


def test_fields_per_kind(edge: EdgeServer) -> None:
    assert authorized(edge, CHANNEL).keys() == {"auth"}
    presence = authorized(edge, {**CHANNEL, "channel_name": "presence-a"}, member="m_7")
    assert json.loads(presence["member_data"]) == {"member_id": "m_7", "member_info": {"name": "m_7"}}
    vault = {**CHANNEL, "channel_name": "private-encrypted-vault"}
    edge.set_encryption_master_key(bytes(range(32)))
    assert authorized(edge, vault)["shared_secret"] == "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc="
    edge.set_encryption_master_key(bytes(range(31, -1, -1)))
    assert authorized(edge, vault)["shared_secret"] == "GRd8Z7MAb5GXpWOt24pQPXo5lmNZs/jBud4TmCJvsdg="


def test_members(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(members={"m_7": {"name": "Noor"}, "m_8": None}))

    def member(name: str | None = None) -> Any:
        status, text, _ = post(edge.member_auth_endpoint, {"connection_id": "1.1"}, member=name)
        return json.loads(json.loads(text)["member_data"]) if status == 200 else status

    assert member() == {"member_id": "m_7", "member_info": {"name": "Noor"}}
    assert member("m_8") == {"member_id": "m_8", "member_info": None}
    assert member("m_9") == 403
    edge.set_member("m_9", {"name": "Sol"}, default=True)
    assert member() == {"member_id": "m_9", "member_info": {"name": "Sol"}}


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", {}, {"connection_id": 1, "channel_name": "a"}, {"connection_id": "1.1"}]
)
def test_bad_bodies(edge: EdgeServer, body: Any) -> None:
    status, text, _ = post(edge.auth_endpoint, body)
    assert status == 400
    assert "channel_name" in text or "connection_id" in text


def test_only_post_and_only_small_bodies(edge: EdgeServer) -> None:
    assert post(edge.auth_endpoint, b" " * (16 * 1024 + 1))[0] == 413
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(edge.auth_endpoint, timeout=TIMEOUT_S)  # noqa: S310
    with refused.value:
        assert refused.value.code == 405


def test_denied_channels(edge: EdgeServer) -> None:
    edge.deny_channel("private-a")
    assert post(edge.auth_endpoint, CHANNEL)[0] == 403
    assert post(edge.auth_endpoint, {**CHANNEL, "channel_name": "private-b"})[0] == 200
    edge.allow_channel("private-a")
    assert post(edge.auth_endpoint, CHANNEL)[0] == 200


def test_status_retry_after_and_times(edge: EdgeServer) -> None:
    edge.fail_http("auth", status=503, retry_after="7", times=2)
    for _ in range(2):
        status, _, headers = post(edge.auth_endpoint, CHANNEL)
        assert (status, headers["retry-after"]) == (503, "7")
    assert post(edge.auth_endpoint, CHANNEL)[0] == 200


def test_redirect(edge: EdgeServer) -> None:
    edge.fail_http("member_auth", status=302, location="http://127.0.0.1:9/elsewhere")
    status, _, headers = post(edge.member_auth_endpoint, {"connection_id": "1.1"})
    assert (status, headers["location"]) == (302, "http://127.0.0.1:9/elsewhere")
    assert post(edge.auth_endpoint, CHANNEL)[0] == 200
    edge.clear_faults()
    assert post(edge.member_auth_endpoint, {"connection_id": "1.1"})[0] == 200


def test_html_and_garbage(edge: EdgeServer) -> None:
    edge.fail_http("auth", body="<html>login</html>", content_type="text/html")
    status, text, headers = post(edge.auth_endpoint, CHANNEL)
    assert (status, text, headers["content-type"]) == (200, "<html>login</html>", "text/html")
    edge.fail_http("auth", body='{"auth":', headers={"x-more": "1"})
    status, text, headers = post(edge.auth_endpoint, CHANNEL)
    assert (status, text, headers["x-more"]) == (200, '{"auth":', "1")


def test_slow(edge: EdgeServer) -> None:
    edge.fail_http("auth", delay_s=0.2)
    started = time.monotonic()
    assert post(edge.auth_endpoint, CHANNEL)[0] == 200
    assert time.monotonic() - started >= 0.2


def test_hang(edge: EdgeServer) -> None:
    edge.fail_http("auth", hang=True, times=1)
    with pytest.raises(TimeoutError):
        post(edge.auth_endpoint, CHANNEL, timeout_s=0.2)
    assert post(edge.auth_endpoint, CHANNEL)[0] == 200


def test_wrong_signature(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    body = {**CHANNEL, "connection_id": client.connection_id}
    edge.fail_http("auth", wrong_signature=True, times=1)
    wrong, right = authorized(edge, body)["auth"], authorized(edge, body)["auth"]
    assert wrong.partition(":")[0] == edge.app_key
    assert right == signing.auth_string(edge.app_key, edge.app_secret, f"{client.connection_id}:private-a")
    for auth, event in ((wrong, "bird:error"), (right, "bird_internal:subscription_succeeded")):
        client.send("bird:subscribe", {"channel": "private-a", "auth": auth})
        assert client.receive()["event"] == event


def test_requests_are_in_the_journal(edge: EdgeServer) -> None:
    post(edge.auth_endpoint, CHANNEL)
    post(edge.member_auth_endpoint, {"connection_id": "1.1"})
    assert [json.loads(entry.text) for entry in edge.journal("auth")] == [CHANNEL]
    assert [json.loads(entry.text) for entry in edge.journal("member_auth")] == [{"connection_id": "1.1"}]


def test_the_configured_master_key_is_the_one_in_force(edge: EdgeServer) -> None:
    secret = authorized(edge, {**CHANNEL, "channel_name": "private-encrypted-a"})["shared_secret"]
    assert secret == signing.shared_secret("private-encrypted-a", base64.b64decode(edge.encryption_master_key))
