"""The examples in Swift against the local edge."""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from program import Program

from bird_realtime.testing import App, EdgeConfig, EdgeServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    from bird import Bird

VAULT = "private-encrypted-vault"
MASTER_KEY = bytes(range(32))
ROTATED_MASTER_KEY = bytes(reversed(range(32)))

Run = Callable[..., Program]
MakeSDK = Callable[[bytes], Bird]


@pytest.fixture
def edge() -> Iterator[EdgeServer]:
    members = {"m_7": {"name": "Noor"}, "m_8": None}
    config = EdgeConfig(app=App(client_events=True), members=members, encryption_master_key=MASTER_KEY)
    with EdgeServer(config) as running:
        yield running


@pytest.fixture
def sdk(edge: EdgeServer) -> Iterator[MakeSDK]:
    """The official SDK of a backend with this master key."""
    with ExitStack() as stack:

        def make(master_key: bytes) -> Bird:
            return stack.enter_context(
                Bird(
                    api_key=edge.api_key,
                    base_url=edge.base_url,
                    realtime_key=edge.app_key,
                    realtime_secret=edge.app_secret,
                    realtime_encryption_master_key=base64.b64encode(master_key).decode(),
                    max_retries=0,
                )
            )

        yield make


@pytest.fixture
def run(edge: EdgeServer, run_swift: Run) -> Run:
    return lambda name, *arguments: run_swift("swift-example", name, edge.app_key, edge.ws_host, *arguments)


def test_chat(edge: EdgeServer, run: Run) -> None:
    def chat(member: str) -> Program:
        return run("chat", edge.auth_endpoint, edge.member_auth_endpoint, member)

    first = chat("m_7")
    first.wait_for("subscribed private-ledger")
    edge.wait_for_subscription("orders")
    edge.publish("moved", ["orders"], {"left": 4})
    first.wait_for(r'event orders moved \{"left": ?4\}')
    second = chat("m_8")
    second.wait_for("subscribed private-ledger")
    second.write('{"text":"hello"}')
    first.wait_for(r'event private-ledger client-said \{"text":"hello"\}')
    edge.drop_connections()
    first.wait_for("unavailable")
    first.wait_for("connected")
    edge.wait_for_signin("m_7")
    edge.disconnect_member("m_7")
    first.wait_for("error 4009 .+")
    first.wait_for("failed")
    assert first.wait() == 0


def test_headers(edge: EdgeServer, run: Run, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    example = run("headers", edge.auth_endpoint, str(token_file), "presence-lobby")
    example.wait_for(f"no token for {edge.auth_endpoint} yet")
    token_file.write_text("m_7\n")
    example.wait_for(f"a token for {edge.auth_endpoint}")
    example.wait_for("subscribed to presence-lobby")
    edge.publish("moved", ["presence-lobby"], {"left": 4})
    example.wait_for(r'presence-lobby: moved \{"left": ?4\}')
    assert [channel.member_ids for channel in edge.channels()] == [("m_7",)]
    token_file.write_text("m_8\n")
    edge.drop_connections()
    example.wait_for("unavailable")
    example.wait_for("subscribed to presence-lobby")
    assert [channel.member_ids for channel in edge.channels()] == [("m_8",)]


def test_staged(edge: EdgeServer, run: Run) -> None:
    example = run("staged", "0.04", "86400", "3")
    example.wait_for("connected: .*")
    edge.drop_connections()
    example.wait_for("unavailable: .*")
    example.wait_for("the connection is lost")
    example.wait_for("attempt 1 in 0.04 s")
    example.wait_for("attempt 1 is skipped, after: .+")
    example.wait_for("attempt 2 in 86400.0 s")
    example.write("")  # nobody waits for a day
    example.wait_for("connected: .*")
    example.end_input()
    assert example.wait() == 0


def test_staged_gives_up_and_begins_again(edge: EdgeServer, run: Run) -> None:
    example = run("staged", "0.02", "0.02", "1")
    for _ in range(2):
        example.wait_for("connected: .*")
        edge.drop_connections()
        example.wait_for("attempt 1 is skipped, after: .+")
        example.wait_for("disconnected: gave up after 1 attempt: .+")
        example.write("")
    example.wait_for("connected: .*")
    example.end_input()
    assert example.wait() == 0


def test_watchlist(edge: EdgeServer, run: Run) -> None:
    edge.update_app(watchlist_events=True)
    edge.set_watchlist("m_7", ["m_8", "m_9"])
    example = run("watchlist", edge.member_auth_endpoint, "m_7")
    example.wait_for("offline: m_8 m_9")
    other = run("watchlist", edge.member_auth_endpoint, "m_8")
    example.wait_for("online: m_8")
    other.end_input()
    example.wait_for("offline: m_8")
    edge.set_watchlist("m_7", ["m_7"])
    example.write("")
    assert {example.wait_for("online: m_7|signed in again")[0] for _ in range(2)} == {"online: m_7", "signed in again"}
    example.end_input()
    example.wait_for("still online: m_7")
    assert example.wait() == 0


def test_rolling_log(edge: EdgeServer, run: Run, tmp_path: Path) -> None:
    log = tmp_path / "bird.log"
    example = run("rolling-log", str(log), "orders")
    edge.wait_for_subscription("orders")
    edge.drop_connections()
    example.wait_for("warn: unavailable: .*")
    edge.wait_for_subscription("orders")
    edge.close_connections(4001, "App does not exist")
    example.wait_for("error: failed: App does not exist")
    assert example.wait() == 0
    assert not [line for line in example.lines if line.startswith(("info", "verbose"))]
    told = log.read_text()
    assert "info channel: subscribed to orders again" in told
    assert "verbose wire: sends bird:subscribe, " in told


def test_statistics(edge: EdgeServer, run: Run) -> None:
    example = run("statistics", "orders")
    edge.wait_for_subscription("orders")
    edge.publish("moved", ["orders"], 1)
    line = ""
    while line != "1 of 1 channels, 1 events in 3 messages, 0 reconnects, 0 dropped":  # it tells what is in so far
        example.write("")
        line = example.wait_for(".*dropped")[0]
    example.write("dump")
    report = json.loads(example.wait_for(r"\{.*\}")[0])
    assert report["channels"] == [{"name": "orders", "state": "subscribed"}]
    assert report["client"]["state"] == "connected"
    example.end_input()
    assert example.wait() == 0


def test_encrypted(edge: EdgeServer, run: Run, sdk: MakeSDK) -> None:
    example = run("encrypted", edge.auth_endpoint, VAULT)
    example.wait_for("nothing can be sent: .*")
    example.wait_for(f"subscribed to {VAULT}")
    sdk(MASTER_KEY).realtime.publish(edge.app_id, event="balance", channels=[VAULT], data={"cents": 7})
    example.wait_for(VAULT + r': balance \{"cents": ?7\}')
    edge.set_encryption_master_key(ROTATED_MASTER_KEY)
    sdk(ROTATED_MASTER_KEY).realtime.publish(edge.app_id, event="balance", channels=[VAULT], data={"cents": 8})
    example.wait_for(VAULT + r': balance \{"cents": ?8\}')
    sdk(MASTER_KEY).realtime.publish(edge.app_id, event="late", channels=[VAULT], data={"cents": 9})
    example.wait_for("cannot read: late")


def test_bad_arguments(run_swift: Run, run: Run) -> None:
    for arguments in ([], ["chat"], ["no-such-example", "a", "b"]):
        example = run_swift("swift-example", *arguments)
        example.wait_for("usage: swift-example chat .*")
        assert example.wait() == 2
    example = run("chat", "http://auth.example.com/", "http://auth.example.com/", "m_7")
    example.wait_for(".*auth_endpoint.*")
    assert example.wait() == 1
