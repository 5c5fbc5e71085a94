"""The examples in C against the local edge, with events from the official server SDK."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from paths import PROGRAMS
from program import Program

from bird_realtime.edge.signing import auth_string, channel_string
from bird_realtime.testing import App, EdgeConfig, EdgeServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    from bird import Bird

RunExample = Callable[..., Program]


@pytest.fixture
def edge() -> Iterator[EdgeServer]:
    members = {"m_7": {"name": "Noor"}, "m_8": None}
    with EdgeServer(EdgeConfig(app=App(client_events=True), members=members)) as running:
        yield running


@pytest.fixture
def sdk(edge: EdgeServer) -> Iterator[Bird]:
    client = Bird(
        api_key=edge.api_key,
        base_url=edge.base_url,
        realtime_key=edge.app_key,
        realtime_secret=edge.app_secret,
        max_retries=0,
    )
    with client:
        yield client


@pytest.fixture
def run(edge: EdgeServer) -> Iterator[RunExample]:
    with ExitStack() as stack:

        def begin(name: str, *arguments: str) -> Program:
            program = Program([PROGRAMS / name, edge.app_key, edge.ws_host, *arguments])
            stack.callback(program.close)
            return program

        yield begin


def test_subscribe(edge: EdgeServer, sdk: Bird, run: RunExample) -> None:
    example = run("subscribe", "orders")
    example.wait_for("connected .*")
    example.wait_for("subscribed to orders")
    sdk.realtime.publish(edge.app_id, event="stock.moved", channels=["orders", "news"], data={"sku": "A-19", "left": 4})
    assert example.wait_for(r"orders: stock\.moved (.*)")[1] in (
        '{"sku":"A-19","left":4}',
        '{"sku": "A-19", "left": 4}',
    )
    edge.drop_connections()
    example.wait_for("unavailable .*")
    example.wait_for("subscribed to orders again")
    sdk.realtime.publish(edge.app_id, event="stock.moved", channels=["orders"], data="gone")
    example.wait_for(r'orders: stock\.moved "gone"')
    edge.close_connections(4001, "App does not exist")
    example.wait_for("failed .*")
    assert example.wait() == 0


def test_presence(edge: EdgeServer, run: RunExample) -> None:
    first = run("presence", edge.auth_endpoint, "m_7", "presence-lobby")
    first.wait_for("here as m_7, with 1 in all:")
    first.wait_for(r'  m_7 \{"name": ?"Noor"\}')
    second = run("presence", edge.auth_endpoint, "m_8", "presence-lobby")
    second.wait_for("here as m_8, with 2 in all:")
    first.wait_for("joined: m_8")
    first.write('{"text":"hello"}')
    second.wait_for(r'said: \{"text":"hello"\}')
    first.write("hello")
    first.wait_for("not said: .*")
    second.end_input()
    first.wait_for("left: m_8")
    assert second.wait() == 0


def test_signin(edge: EdgeServer, sdk: Bird, run: RunExample) -> None:
    example = run("signin", edge.member_auth_endpoint, "m_7")
    example.wait_for("signed in as m_7")
    edge.wait_for_subscription("#server-to-user-m_7")
    sdk.realtime.members.send(edge.app_id, "m_7", event="parcel.left", data={"parcel": "P-55"})
    example.wait_for(r'for me: parcel\.left \{"parcel": ?"P-55"\}')
    edge.drop_connections()
    example.wait_for("signed in as m_7")
    edge.wait_for_signin("m_7")
    sdk.realtime.members.disconnect(edge.app_id, "m_7")
    example.wait_for("failed .+")
    assert example.wait() == 0


def test_authorizer(edge: EdgeServer, run: RunExample) -> None:
    example = run("authorizer", "private-ledger")
    for round_number in range(2):
        connection_id = example.wait_for(r"sign ([\d.]+):private-ledger")[1]
        signed = channel_string(connection_id, "private-ledger")
        example.write(auth_string(edge.app_key, edge.app_secret, signed))
        example.wait_for("subscribed to private-ledger")
        edge.publish("balance", ["private-ledger"], round_number)
        example.wait_for(f"private-ledger: balance {round_number}")
        edge.drop_connections()
    example.wait_for(r"sign ([\d.]+):private-ledger")
    example.write("")
    example.wait_for("not on private-ledger: .*no signature was given.*")


def test_bad_arguments(run: RunExample) -> None:
    for name in ("subscribe", "presence", "signin", "authorizer"):
        example = run(name)
        example.wait_for(f"usage: {name} .*")
        assert example.wait() == 2
    example = run("subscribe", "two words")
    example.wait_for("BIRD_ERR_NAME: .*")
    assert example.wait() == 1
