"""Encrypted channels: the official server SDK seals, the edge relays, the library opens (Bird protocol §21)."""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import StartClient
from nacl.secret import SecretBox
from script_client import Record, ScriptClient
from scripted_server import Connection, ScriptedServer, event, text

from bird_realtime.edge import signing
from bird_realtime.testing import App, EdgeConfig, EdgeServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    from bird import Bird

VAULT = "private-encrypted-vault"
MASTER_KEY = bytes(range(32))
ROTATED_MASTER_KEY = bytes(reversed(range(32)))

MakeSDK = Callable[[bytes], Bird]


@pytest.fixture
def edge() -> Iterator[EdgeServer]:
    with EdgeServer(EdgeConfig(app=App(client_events=True), encryption_master_key=MASTER_KEY)) as running:
        yield running


@pytest.fixture
def sdk(edge: EdgeServer) -> Iterator[MakeSDK]:
    """The SDK of a backend with this master key."""
    made: list[Bird] = []

    def make(master_key: bytes) -> Bird:
        made.append(
            Bird(
                api_key=edge.api_key,
                base_url=edge.base_url,
                realtime_key=edge.app_key,
                realtime_secret=edge.app_secret,
                realtime_encryption_master_key=base64.b64encode(master_key).decode(),
                max_retries=0,
            )
        )
        return made[-1]

    yield make
    for each in made:
        each.close()


def open_vault(edge: EdgeServer, start: StartClient, **options: str | int) -> ScriptClient:
    """A client that is subscribed to the vault."""
    client = start_with(edge, start, auth_endpoint=edge.auth_endpoint, **options)
    client.do("subscribe", VAULT, 0)
    client.wait_for("subscribed", channel=VAULT)
    return client


def start_with(edge: EdgeServer, start: StartClient, **options: str | int) -> ScriptClient:
    client = start(edge, app_key=edge.app_key, ws_host=edge.ws_host, **options)
    client.do("connect")
    return client


def balances(client: ScriptClient) -> list[int]:
    return [json.loads(record["data"])["balance"] for record in client.all("event", event="balance.set")]


def publish(backend: Bird, edge: EdgeServer, *numbers: int) -> None:
    for number in numbers:
        backend.realtime.publish(edge.app_id, event="balance.set", channels=[VAULT], data={"balance": number})


def failure_of(record: Record) -> dict[str, Any]:
    """What a bird:decryption_error says was lost."""
    assert record["error"] == "BIRD_ERR_DECRYPTION"
    assert record["event"] == "bird:decryption_error"
    data: dict[str, Any] = json.loads(record["data"])
    return data


def test_what_the_sdk_seals_is_opened(edge: EdgeServer, sdk: MakeSDK, start: StartClient) -> None:
    client = open_vault(edge, start)
    cache = "private-encrypted-cache-vault"
    client.do("subscribe", cache, 0)
    client.wait_for("event", channel=cache, event="bird:cache_miss")
    backend = sdk(MASTER_KEY)
    backend.realtime.publish(edge.app_id, event="a", channels=[VAULT], data={"owner": "Noor é"})
    backend.realtime.publish(edge.app_id, event="b", channels=[VAULT], data="hello")
    backend.realtime.publish(edge.app_id, event="c", channels=[VAULT])
    backend.realtime.publish_batch(
        edge.app_id,
        events=[
            {"event": "d", "channel": VAULT, "data": [1, 2]},
            {"event": "e", "channel": cache, "data": {"left": 4}},
            {"event": "f", "channel": VAULT, "data": 7},
        ],
    )
    seen = [client.wait_for("event", event=name) for name in "abcd"]
    assert [record["data"] for record in seen] == ['{"owner":"Noor é"}', '"hello"', "null", "[1,2]"]
    assert client.wait_for("event", event="e")["data"] == '{"left":4}'
    assert client.wait_for("event", event="f")["data"] == "7"
    # Neither plaintext nor a key has been on the wire.
    wire = json.dumps([(entry.kind, entry.text) for entry in edge.journal()])
    assert "Noor" not in wire
    assert "hello" not in wire
    assert signing.shared_secret(VAULT, MASTER_KEY)[:20] not in wire


def test_a_rotated_master_key(edge: EdgeServer, sdk: MakeSDK, start: StartClient) -> None:
    client = open_vault(edge, start)
    old, new = sdk(MASTER_KEY), sdk(ROTATED_MASTER_KEY)
    publish(old, edge, 1, 2)
    client.wait_for("event", event="balance.set")
    # The answer takes a while: what comes meanwhile waits for it.
    edge.set_encryption_master_key(ROTATED_MASTER_KEY)
    edge.fail_http("auth", delay_s=0.5, times=1)
    publish(new, edge, *range(3, 40))
    client.wait_for("event", data='{"balance":39}')
    assert balances(client) == list(range(1, 40))
    assert client.all("decryption_error") == []
    assert (client.statistic("authorizations"), client.statistic("key_refreshes")) == (2, 1)
    # Somebody who still uses the old key is not understood, and everybody else is.
    publish(old, edge, 40)
    publish(new, edge, 41)
    lost = client.wait_for("decryption_error", channel=VAULT)
    assert failure_of(lost) == {"channel": VAULT, "event": "balance.set"}
    client.wait_for("event", data='{"balance":41}')
    assert (client.statistic("authorizations"), client.statistic("decryption_failures")) == (2, 1)


def test_the_sdk_authorizes(edge: EdgeServer, sdk: MakeSDK, start: StartClient) -> None:
    client = start_with(edge, start, authorizer=1)
    client.do("subscribe", VAULT, 0)

    def answer(backend: Bird) -> None:
        question = client.wait_for("request", asks="channel", channel_name=VAULT)
        answer = backend.realtime.authorize_channel(connection_id=question["connection_id"], channel_name=VAULT)
        client.do("entrust", question["request"], answer["auth"], answer["shared_secret"])

    old, new = sdk(MASTER_KEY), sdk(ROTATED_MASTER_KEY)
    answer(old)
    client.wait_for("subscribed", channel=VAULT)
    publish(old, edge, 1)
    publish(new, edge, 2, 3)
    answer(new)
    client.wait_for("event", data='{"balance":3}')
    assert balances(client) == [1, 2, 3]


def test_headers_of_a_refresh_are_asked_for(edge: EdgeServer, sdk: MakeSDK, start: StartClient) -> None:
    client = start_with(edge, start, auth_endpoint=edge.auth_endpoint, header_provider=1)
    client.do("subscribe", VAULT, 0)
    for master_key, number in ((MASTER_KEY, 1), (ROTATED_MASTER_KEY, 2)):
        edge.set_encryption_master_key(master_key)
        if number == 1:
            question = client.wait_for("request", asks="headers")
            client.do("headers", question["request"], "authorization", "Bearer m_1")
            client.wait_for("subscribed", channel=VAULT)
            publish(sdk(master_key), edge, number)
        else:
            publish(sdk(master_key), edge, number)
            question = client.wait_for("request", asks="headers")
            client.do("headers", question["request"], "authorization", "Bearer m_1")
        client.wait_for("event", data=f'{{"balance":{number}}}')


def test_an_authorization_without_a_secret(edge: EdgeServer, start: StartClient) -> None:
    edge.fail_http("auth", body='{"auth":"key:signature"}', content_type="application/json", times=1)
    client = start_with(edge, start, auth_endpoint=edge.auth_endpoint)
    client.do("subscribe", VAULT, 0)
    failed = client.wait_for("subscription_error", channel=VAULT)
    assert (failed["error"], failed["field"], failed["will_retry"]) == ("BIRD_ERR_AUTH", "shared_secret", 0)
    assert "shared_secret" in failed["message"]
    assert not any("bird:subscribe" in (entry.text or "") for entry in edge.journal("received"))


def test_a_denied_refresh_leaves_the_key(edge: EdgeServer, sdk: MakeSDK, start: StartClient) -> None:
    client = open_vault(edge, start)
    old, new = sdk(MASTER_KEY), sdk(ROTATED_MASTER_KEY)
    edge.deny_channel(VAULT)
    publish(new, edge, 1)
    publish(old, edge, 2)
    publish(new, edge, 3)
    publish(old, edge, 4)
    client.wait_for("event", data='{"balance":4}')
    told = [r for r in client.everything() if r["record"] in ("event", "decryption_error")]
    assert [r["record"] for r in told] == ["decryption_error", "event", "decryption_error", "event"]
    assert [(r["http_status"], r["endpoint"]) for r in told[::2]] == [(403, edge.auth_endpoint)] * 2
    assert client.statistic("authorizations") == 2


def test_a_backend_that_fails_for_a_moment_loses_nothing(edge: EdgeServer, sdk: MakeSDK, start: StartClient) -> None:
    client = open_vault(edge, start)
    edge.set_encryption_master_key(ROTATED_MASTER_KEY)
    edge.fail_http("auth", status=503, times=2)
    publish(sdk(ROTATED_MASTER_KEY), edge, 1, 2)
    client.wait_for("event", data='{"balance":2}')
    assert balances(client) == [1, 2]
    assert client.all("decryption_error") == []


def test_a_new_connection_has_a_new_key(edge: EdgeServer, sdk: MakeSDK, start: StartClient) -> None:
    client = open_vault(edge, start)
    edge.set_encryption_master_key(ROTATED_MASTER_KEY)
    edge.drop_connections()
    client.wait_for("subscribed", channel=VAULT)
    publish(sdk(ROTATED_MASTER_KEY), edge, 1)
    client.wait_for("event", data='{"balance":1}')
    assert client.statistic("key_refreshes") == 0


def test_nothing_is_sent_on_an_encrypted_channel(edge: EdgeServer, start: StartClient) -> None:
    client = open_vault(edge, start)
    refused = client.call("trigger", VAULT, "client-x", "1")
    assert (refused["status"], refused["field"]) == ("BIRD_ERR_UNSUPPORTED", "channel")
    assert VAULT in refused["message"]


# A server that sends what it likes.


def seal(data: object, master_key: bytes) -> dict[str, str]:
    key = base64.b64decode(signing.shared_secret(VAULT, master_key))
    sealed = SecretBox(key).encrypt(json.dumps(data).encode())
    return {
        "nonce": base64.b64encode(sealed.nonce).decode(),
        "ciphertext": base64.b64encode(sealed.ciphertext).decode(),
    }


def answer(auth: ScriptedServer, master_key: bytes) -> None:
    post = auth.accept()
    _, body = post.read_post()
    assert body["channel_name"] == VAULT
    post.respond(200, json.dumps({"auth": "key:s", "shared_secret": signing.shared_secret(VAULT, master_key)}))


@pytest.fixture
def vault(server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> tuple[ScriptClient, Connection]:
    client = connect(server, auth_endpoint=f"http://{auth.host}/bird/auth", auth_timeout_ms=60_000)
    client.do("subscribe", VAULT, 0)
    connection = server.accept()
    connection.establish()
    answer(auth, MASTER_KEY)
    connection.join(VAULT, auth="key:s")
    client.wait_for("subscribed", channel=VAULT)
    return client, connection


def test_reading_rests_when_too_much_waits_and_nothing_is_lost(
    auth: ScriptedServer, vault: tuple[ScriptClient, Connection]
) -> None:
    client, connection = vault
    connection.send_text(event("e", VAULT, seal(0, ROTATED_MASTER_KEY)))
    sealed = [text(event("e", VAULT, seal(number, ROTATED_MASTER_KEY))) for number in range(100_000, 100_400)]
    filler = text(event("other", VAULT, seal("x" * 60_000, ROTATED_MASTER_KEY)))
    fillers = 400
    sent = connection.send_until_stalled(filler * fillers, 0.5)
    assert sent < fillers * len(filler)
    assert client.statistic("bytes_received") < 2 * 1024 * 1024
    answer(auth, ROTATED_MASTER_KEY)
    whole = -(-sent // len(filler))
    connection.send((filler * whole)[sent:] + b"".join(sealed))
    client.wait_for("event", data="100399")
    assert [int(r["data"]) for r in client.all("event", event="e")] == [0, *range(100_000, 100_400)]
    assert len(client.all("event", event="other")) == whole
    assert client.statistic("key_refreshes") == 1


def test_nothing_comes_after_unsubscribe(auth: ScriptedServer, vault: tuple[ScriptClient, Connection]) -> None:
    client, connection = vault
    connection.send_text(event("e", VAULT, seal(1, ROTATED_MASTER_KEY)))
    post = auth.accept()
    post.read_post()
    client.do("unsubscribe", VAULT)
    connection.expect({"event": "bird:unsubscribe", "data": {"channel": VAULT}})
    connection.send_text(event("e", VAULT, seal(2, MASTER_KEY)))
    connection.send_close(4009)
    client.wait_for_state("failed")
    assert client.all("event") == []
    assert client.all("decryption_error") == []


def test_what_waits_is_told_before_the_connection_ends(
    auth: ScriptedServer, vault: tuple[ScriptClient, Connection]
) -> None:
    client, connection = vault
    connection.send_text(event("lost", VAULT, seal(1, ROTATED_MASTER_KEY)), event("kept", VAULT, seal(2, MASTER_KEY)))
    post = auth.accept()
    post.read_post()
    connection.send_close(4009)
    client.wait_for_state("failed")
    told = [r for r in client.everything() if r["record"] in ("event", "decryption_error", "state")][-3:]
    assert [r["record"] for r in told] == ["decryption_error", "event", "state"]
    assert failure_of(told[0])["event"] == "lost"
    assert told[1]["data"] == "2"
