"""The official server SDK, unmodified, publishes to the edge."""

from __future__ import annotations

import asyncio
import base64
import json
import warnings
from collections.abc import Callable, Iterator

import pytest
from nacl.secret import SecretBox
from raw_client import RawClient

from bird_realtime.edge import signing
from bird_realtime.testing import EdgeServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    import bird
    from bird import AsyncBird, Bird

Connect = Callable[[], RawClient]


@pytest.fixture
def sdk(edge: EdgeServer) -> Iterator[Bird]:
    client = Bird(
        api_key=edge.api_key,
        base_url=edge.base_url,
        realtime_key=edge.app_key,
        realtime_secret=edge.app_secret,
        realtime_encryption_master_key=edge.encryption_master_key,
        max_retries=0,
    )
    with client:
        yield client


def test_publish(sdk: Bird, edge: EdgeServer, connect: Connect) -> None:
    client, excluded = connect(), connect()
    for each in (client, excluded):
        each.subscribe("orders")
    client.subscribe("presence-lobby", {"member_id": "m_7"})
    result = sdk.realtime.publish(
        edge.app_id,
        event="stock.moved",
        channels=["presence-lobby", "orders", "orders"],
        data={"sku": "A-19", "left": 4, "more": None},
        exclude_connection_id=excluded.connection_id,
        include=["member_count", "connection_count"],
    )
    assert [row.model_dump(exclude_none=True) for row in result.data or []] == [
        {"name": "orders", "connection_count": 2},
        {"name": "presence-lobby", "member_count": 1, "connection_count": 1},
    ]
    data = {"sku": "A-19", "left": 4, "more": None}
    assert client.frames_so_far() == [
        {"event": "stock.moved", "channel": "presence-lobby", "data": data},
        {"event": "stock.moved", "channel": "orders", "data": data},
    ]
    assert excluded.frames_so_far() == []


@pytest.mark.parametrize("data", [None, False, 0, "ready", "42", [], "é"])
def test_payloads(sdk: Bird, edge: EdgeServer, connect: Connect, data: object) -> None:
    client = connect()
    client.subscribe("orders")
    assert sdk.realtime.publish(edge.app_id, event="x", channels=["orders"], data=data).data is None
    frame = client.receive()
    assert frame.get("data") == data
    assert ("data" in frame) == (data is not None)


def test_publish_batch(sdk: Bird, edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    client.subscribe("presence-lobby", {"member_id": "m_7"})
    result = sdk.realtime.publish_batch(
        edge.app_id,
        events=[
            {"event": "a.made", "channel": "orders", "data": {"id": 1}},
            {"event": "b.made", "channel": "presence-lobby", "include": ["member_count"]},
        ],
    )
    assert [row.model_dump(exclude_none=True) for row in result.data or []] == [
        {"channel": "orders"},
        {"channel": "presence-lobby", "member_count": 1},
    ]
    assert [frame["event"] for frame in client.frames_so_far()] == ["a.made", "b.made"]


def test_channels(sdk: Bird, edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("presence-lobby@x", {"member_id": 7})
    listed = sdk.realtime.channels.list(edge.app_id, prefix="presence-", include=["member_count", "connection_count"])
    assert [row.model_dump() for row in listed.data] == [
        {"name": "presence-lobby@x", "member_count": 1, "connection_count": 1}
    ]
    info = sdk.realtime.channels.get(edge.app_id, "presence-lobby@x", include=["member_count"])
    assert (info.occupied, info.member_count) == (True, 1)
    assert sdk.realtime.channels.get(edge.app_id, "empty").occupied is False
    members = sdk.realtime.channels.members(edge.app_id, "presence-lobby@x").members
    assert [member.member_id for member in members] == ["7"]


def test_members(sdk: Bird, edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.sign_in({"member_id": "m:7+b"})
    client.subscribe("#server-to-user-m:7+b")
    sdk.realtime.members.send(edge.app_id, "m:7+b", event="parcel.left", data={"parcel": "P-55"})
    assert client.receive()["data"] == {"parcel": "P-55"}
    sdk.realtime.members.send(edge.app_id, "nobody", event="parcel.left")
    sdk.realtime.members.disconnect(edge.app_id, "m:7+b")
    assert client.receive_close() == (4009, "Member connections terminated")


def test_disconnecting_a_member_tells_watchers(sdk: Bird, edge: EdgeServer, connect: Connect) -> None:
    edge.update_app(watchlist_events=True)
    watcher, first, second = connect(), connect(), connect()
    for client in (first, second):
        client.sign_in({"member_id": "m_8"})
    watcher.sign_in({"member_id": "m_7", "watchlist": ["m_8"]})
    assert watcher.receive()["data"] == {"events": [{"name": "online", "member_ids": ["m_8"]}]}
    sdk.realtime.members.disconnect(edge.app_id, "m_8")
    for client in (first, second):
        assert client.receive_close() == (4009, "Member connections terminated")
    assert [frame["data"] for frame in watcher.frames_so_far()] == [
        {"events": [{"name": "offline", "member_ids": ["m_8"]}]}
    ]


def test_cache_channels(sdk: Bird, edge: EdgeServer, connect: Connect) -> None:
    first, second, third = connect(), connect(), connect()
    miss = {"event": "bird:cache_miss", "channel": "cache-prices"}
    first.subscribe("cache-prices")
    assert first.receive() == miss
    sdk.realtime.publish(edge.app_id, event="moved", channels=["cache-prices"], data={"eur": 1.5})
    event = {"event": "moved", "channel": "cache-prices", "data": {"eur": 1.5}}
    assert first.receive() == event
    second.subscribe("cache-prices")
    assert second.receive() == event
    edge.clear_cache()
    third.subscribe("cache-prices")
    assert third.receive() == miss


def test_an_encrypted_cache_channel_keeps_the_envelope(sdk: Bird, edge: EdgeServer, connect: Connect) -> None:
    name = "private-encrypted-cache-vault"
    first, second = connect(), connect()
    first.subscribe(name)
    assert first.receive() == {"event": "bird:cache_miss", "channel": name}
    sdk.realtime.publish(edge.app_id, event="balance.set", channels=[name], data={"balance": 1250})
    event = first.receive()
    assert event["data"].keys() == {"nonce", "ciphertext"}
    second.subscribe(name)
    assert second.receive() == event


def test_sealed_payloads_open_with_the_secret_of_the_auth_backend(
    sdk: Bird, edge: EdgeServer, connect: Connect
) -> None:
    client = connect()
    client.subscribe("private-encrypted-vault")
    sdk.realtime.publish(edge.app_id, event="balance.set", channels=["private-encrypted-vault"], data={"balance": 1250})
    envelope = client.receive()["data"]
    assert envelope.keys() == {"nonce", "ciphertext"}
    secret = signing.shared_secret("private-encrypted-vault", base64.b64decode(edge.encryption_master_key))
    box = SecretBox(base64.b64decode(secret))
    plaintext = box.decrypt(base64.b64decode(envelope["ciphertext"]), base64.b64decode(envelope["nonce"]))
    assert json.loads(plaintext) == {"balance": 1250}


def test_the_signature_of_the_sdk_is_accepted(sdk: Bird, connect: Connect) -> None:
    client = connect()
    member_data = '{"member_id":"m_7"}'
    authorization = sdk.realtime.authorize_channel(
        connection_id=client.connection_id, channel_name="presence-lobby", member_data=member_data
    )
    client.send("bird:subscribe", {"channel": "presence-lobby", "member_data": member_data, **authorization})
    assert client.receive()["event"] == "bird_internal:subscription_succeeded"


def test_errors(sdk: Bird, edge: EdgeServer) -> None:
    with pytest.raises(bird.ValidationError) as invalid:
        sdk.realtime.publish(edge.app_id, event="bird:x", channels=["orders"])
    assert [detail.param for detail in invalid.value.details] == ["event"]
    with pytest.raises(bird.APIStatusError) as missing:
        sdk.realtime.channels.list("rap_11111111111111111111111111")
    assert missing.value.status_code == 404
    with pytest.raises(bird.APIStatusError) as refused:
        sdk.realtime.channels.list(
            edge.app_id, options={"credentials": {"RealtimeKey": edge.app_key, "RealtimeSecret": "wrong"}}
        )
    assert refused.value.status_code == 401


def test_a_retry_is_delivered_once(edge: EdgeServer, sdk: Bird, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    edge.fail_http("rest", status=503, retry_after="0", times=1)
    sdk.with_options(max_retries=2).realtime.publish(edge.app_id, event="x", channels=["orders"])
    assert len(edge.journal("rest")) == 2
    assert len(client.frames_so_far()) == 1


def test_async_sdk(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")

    async def publish() -> None:
        async with AsyncBird(
            api_key=edge.api_key,
            base_url=edge.base_url,
            realtime_key=edge.app_key,
            realtime_secret=edge.app_secret,
            max_retries=0,
        ) as sdk:
            await sdk.realtime.publish(edge.app_id, event="x", channels=["orders"], data=1)

    asyncio.run(publish())
    assert client.receive()["data"] == 1
