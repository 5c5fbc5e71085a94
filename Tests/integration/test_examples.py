"""The examples in C, and Python's twins of them, against the local edge, with events from the official server SDK."""

from __future__ import annotations

import base64
import json
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from paths import PROGRAMS, PYTHON, ROOT
from program import Program
from scripted_server import ScriptedServer

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
            example = [PYTHON, "-u", ROOT / "examples/python" / name] if name.endswith(".py") else [PROGRAMS / name]
            program = Program([*example, edge.app_key, edge.ws_host, *arguments])
            stack.callback(program.close)
            return program

        yield begin


def wait_for_all(example: Program, count: int, pattern: str) -> set[str]:
    """Lines that come in any order."""
    return {example.wait_for(pattern)[0] for _ in range(count)}


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


@pytest.mark.parametrize("name", ["watchlist", "watchlist.py"])
def test_watchlist(edge: EdgeServer, sdk: Bird, run: RunExample, name: str) -> None:
    edge.update_app(watchlist_events=True)
    edge.set_watchlist("m_7", ["m_8", "m_9"])
    example = run(name, edge.member_auth_endpoint, "m_7")
    example.wait_for("signed in as m_7")
    example.wait_for("offline: m_8 m_9")
    other = run(name, edge.member_auth_endpoint, "m_8")
    example.wait_for("online: m_8")
    sdk.realtime.members.disconnect(edge.app_id, "m_8")
    example.wait_for("offline: m_8")
    other.wait_for("error 4009: Member connections terminated")
    other.end_input()
    edge.set_watchlist("m_7", [f"w_{number}" for number in range(101)])
    example.write("")
    example.wait_for("error 4302: .*")
    example.wait_for("offline: w_0 .* w_99")
    example.end_input()
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


def test_encrypted(edge: EdgeServer, face: str) -> None:
    programs: dict[str, list[str | Path]] = {
        "c": [PROGRAMS / "encrypted"],
        "python": [PYTHON, "-u", ROOT / "examples/python/encrypted.py"],
    }
    vault = "private-encrypted-vault"
    keys = [base64.b64decode(edge.encryption_master_key), bytes(range(32))]
    example = Program([*programs[face], edge.app_key, edge.ws_host, edge.auth_endpoint, vault])
    with ExitStack() as stack:
        stack.callback(example.close)
        example.wait_for(f"subscribed to {vault}")
        for number, key in enumerate(keys):
            edge.set_encryption_master_key(key)
            backend = Bird(
                api_key=edge.api_key,
                base_url=edge.base_url,
                realtime_key=edge.app_key,
                realtime_secret=edge.app_secret,
                realtime_encryption_master_key=base64.b64encode(key).decode(),
                max_retries=0,
            )
            stack.enter_context(backend)
            backend.realtime.publish(edge.app_id, event="balance", channels=[vault], data={"n": number})
            example.wait_for(f'{vault}: balance {{"n":{number}}}')
        edge.publish("garbage", [vault], 1)
        example.wait_for('lost {"channel":"private-encrypted-vault","event":"garbage"}: .*envelope.*')


def test_headers(edge: EdgeServer, face: str, auth: ScriptedServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    endpoint = f"http://{auth.host}/auth"
    programs: dict[str, list[str | Path]] = {
        "c": [PROGRAMS / "headers"],
        "python": [PYTHON, "-u", ROOT / "examples/python/headers.py"],
    }
    example = Program([*programs[face], edge.app_key, edge.ws_host, endpoint, str(token), "private-ledger"])

    def grant(shown: str) -> None:
        post = auth.accept()
        head, question = post.read_post()
        assert f"Authorization: Bearer {shown}\r\n" in head
        signed = channel_string(question["connection_id"], "private-ledger")
        post.respond(200, json.dumps({"auth": auth_string(edge.app_key, edge.app_secret, signed)}))
        example.wait_for("subscribed to private-ledger")

    try:
        grant("one")
        edge.publish("balance", ["private-ledger"], 7)
        example.wait_for("private-ledger: balance 7")
        token.write_text("two\n")
        edge.drop_connections()
        grant("two")
        token.unlink()
        edge.drop_connections()
        example.wait_for(f"no token for {endpoint} yet")
        token.write_text("three\n")
        grant("three")
    finally:
        example.close()


def test_threads(edge: EdgeServer, sdk: Bird, run: RunExample) -> None:
    example = run("threads", "orders", "news", "weather")
    assert wait_for_all(example, 3, "subscribed to .*") == {
        "subscribed to orders",
        "subscribed to news",
        "subscribed to weather",
    }
    sdk.realtime.publish(edge.app_id, event="moved", channels=["orders", "news"], data=1)
    assert wait_for_all(example, 2, ".*: moved 1") == {"orders: moved 1", "news: moved 1"}
    example.process.send_signal(signal.SIGTERM)
    example.wait_for("orders: 1 events")
    example.wait_for("news: 1 events")
    example.wait_for("weather: 0 events")
    example.wait_for("2 events in all")
    assert example.wait() == 0


def test_threads_end_when_refused(edge: EdgeServer, run: RunExample) -> None:
    example = run("threads", "orders", "news")
    wait_for_all(example, 2, "subscribed to .*")
    edge.close_connections(4001, "App does not exist")
    example.wait_for("refused: App does not exist")
    example.wait_for("0 events in all")
    assert example.wait() == 0


def test_queue(edge: EdgeServer, run: RunExample) -> None:
    example = run("queue", "orders")
    example.wait_for("100 clients are subscribed")
    for number in range(3):
        edge.publish("moved", ["orders"], number)
    counts = ""
    while counts != "each client had 3 to 3 events":  # it tells what is in so far
        example.write("")
        counts = example.wait_for("each client had .*")[0]
    edge.drop_connections()
    example.wait_for("100 clients are subscribed")
    example.end_input()
    assert example.wait() == 0


def test_queue_ends_when_refused(edge: EdgeServer, run: RunExample) -> None:
    example = run("queue", "orders")
    example.wait_for("100 clients are subscribed")
    edge.close_connections(4001, "App does not exist")
    example.wait_for(r"client \d+ was refused: App does not exist")
    assert example.wait() == 1


@pytest.mark.parametrize("name", ["epoll", "libuv"])
def test_loops_of_the_program(edge: EdgeServer, run: RunExample, name: str) -> None:
    example = run(name, "orders")
    tasks = Path(f"/proc/{example.process.pid}/task")
    example.wait_for("subscribed to orders")
    edge.publish("moved", ["orders"], 1)
    example.wait_for("orders: moved 1")
    # The edge's address is a literal one: there is nothing but the thread of the program.
    assert [task.name for task in tasks.iterdir()] == [str(example.process.pid)]
    # A reconnect is a timer, which makes the library's fd readable.
    edge.drop_connections()
    example.wait_for("unavailable .*")
    example.wait_for("subscribed to orders")
    assert [task.name for task in tasks.iterdir()] == [str(example.process.pid)]
    if name == "epoll":
        example.end_input()
    else:
        example.process.send_signal(signal.SIGINT)
    assert example.wait() == 0


@pytest.mark.parametrize("name", ["epoll", "libuv"])
def test_loops_of_the_program_end_when_refused(edge: EdgeServer, run: RunExample, name: str) -> None:
    example = run(name, "orders")
    example.wait_for("subscribed to orders")
    edge.close_connections(4001, "App does not exist")
    example.wait_for("failed App does not exist")
    assert example.wait() == 0


@pytest.mark.parametrize("name", ["staged", "staged.py"])
def test_staged(edge: EdgeServer, run: RunExample, name: str) -> None:
    example = run(name, "1x40,1x86400000", "3")
    example.wait_for("connected: .*")
    edge.drop_connections()
    example.wait_for("unavailable: .*")
    example.wait_for("the connection is lost")
    example.wait_for(r"attempt 1 in (40 ms|0\.04 s) \(staged\)")
    example.wait_for("attempt 1 is skipped, after: .+")
    example.wait_for(r"attempt 2 in 86400(000 ms|\.0 s) \(staged\)")
    example.write("")  # nobody waits for a day
    example.wait_for("connecting: retry now was called")
    example.wait_for("connected: .*")
    example.end_input()
    assert example.wait() == 0


@pytest.mark.parametrize("name", ["staged", "staged.py"])
def test_staged_gives_up_and_begins_again(edge: EdgeServer, run: RunExample, name: str) -> None:
    example = run(name, "5x20", "1")
    for _ in range(2):
        example.wait_for("connected: .*")
        edge.drop_connections()
        example.wait_for("attempt 1 is skipped, after: .+")
        example.wait_for("disconnected: gave up after 1 attempt: .+")
        example.write("")
    example.wait_for("connected: .*")
    edge.close_connections(4009, "Member connections terminated")
    example.wait_for("failed: Member connections terminated")
    example.end_input()
    assert example.wait() == 0


def test_rolling_log(edge: EdgeServer, run: RunExample, tmp_path: Path) -> None:
    log = tmp_path / "bird.log"
    example = run("rolling_log", str(log), "orders")
    edge.wait_for_subscription("orders")
    edge.drop_connections()
    example.wait_for("warn in connection: unavailable: .*")
    edge.wait_for_subscription("orders")
    edge.close_connections(4001, "App does not exist")
    example.wait_for("error in connection: failed: App does not exist")
    assert example.wait() == 0
    assert not [line for line in example.lines if line.startswith(("info", "verbose"))]
    told = log.read_text()
    assert "info channel: subscribed to orders again" in told
    assert "verbose wire: sends bird:subscribe, " in told


def test_statistics(edge: EdgeServer, run: RunExample) -> None:
    example = run("statistics", "orders")
    edge.wait_for_subscription("orders")
    edge.publish("moved", ["orders"], 1)
    line = ""
    while not re.fullmatch(r"1 of 1 channels, 1 events in \d+ messages, 0 reconnects, 0 dropped", line):
        example.write("")
        line = example.wait_for(".*dropped")[0]
    example.write("dump")
    report = json.loads(example.wait_for(r"\{.*\}")[0])
    assert report["channels"] == [{"name": "orders", "state": "subscribed"}]
    assert report["client"]["state"] == "connected"
    example.end_input()
    assert example.wait() == 0


def test_bad_arguments(run: RunExample) -> None:
    for name in (
        "subscribe",
        "presence",
        "signin",
        "watchlist",
        "authorizer",
        "encrypted",
        "headers",
        "threads",
        "queue",
        "epoll",
        "libuv",
        "staged",
        "rolling_log",
        "statistics",
    ):
        example = run(name)
        example.wait_for(f"usage: {name} .*")
        assert example.wait() == 2
    example = run("subscribe", "two words")
    example.wait_for("BIRD_ERR_NAME: .*")
    assert example.wait() == 1
