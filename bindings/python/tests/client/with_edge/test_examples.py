"""The examples in Python against the edge."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S

ROOT = Path(__file__).parents[5]

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run(edge: EdgeServer) -> Iterator[Run]:
    started: list[subprocess.Popen[str]] = []

    def begin(name: str, *arguments: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-u", str(ROOT / "examples/python" / name), edge.app_key, edge.ws_host, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "bindings/python/src"),
                "APP_SECRET": edge.app_secret,
            },
        )
        started.append(program)
        return program

    yield begin
    for program in started:
        program.kill()
        program.communicate()


def test_rolling_log(edge: EdgeServer, run: Run, tmp_path: Path) -> None:
    log = tmp_path / "bird.log"
    program = run("rolling_log.py", str(log), "orders")
    edge.wait_for_subscription("orders")
    edge.drop_connections()
    wait_for(program, "WARNING in bird_realtime.connection: unavailable: .*")
    edge.wait_for_subscription("orders")
    edge.close_connections(4001, "App does not exist")
    wait_for(program, "ERROR in bird_realtime.connection: failed: App does not exist")
    assert "refused: " in program.communicate(timeout=GENEROUS_S)[1]
    assert "info channel: subscribed to orders again" in log.read_text()


def test_statistics(edge: EdgeServer, run: Run) -> None:
    program = run("statistics.py", "orders")
    edge.wait_for_subscription("orders")
    edge.publish("moved", ["orders"], 1)
    assert program.stdin is not None
    assert program.stdout is not None
    line = ""
    while not re.fullmatch(r"1 of 1 channels, 1 events in \d+ messages, 0 reconnects, 0 dropped\n", line):
        program.stdin.write("\n")
        program.stdin.flush()
        line = program.stdout.readline()
        assert line
    program.stdin.write("dump\n")
    program.stdin.flush()
    report = json.loads(program.stdout.readline())
    assert report["channels"] == [{"name": "orders", "state": "subscribed"}]
    assert program.communicate(timeout=GENEROUS_S)[1] == ""
    assert program.returncode == 0


def wait_for(program: subprocess.Popen[str], pattern: str) -> None:
    """Reads lines up to one that matches; the test's timeout ends what never comes."""
    assert program.stdout is not None
    seen = []
    for line in program.stdout:
        seen.append(line)
        if re.fullmatch(pattern, line.rstrip("\n")):
            return
    pytest.fail(f"no line {pattern!r} in {seen}; {program.communicate()[1]}")


def interrupt(program: subprocess.Popen[str]) -> None:
    program.send_signal(signal.SIGINT)
    errors = program.communicate(timeout=GENEROUS_S)[1]
    assert (program.returncode, errors) == (0, "")


def test_subscribe(edge: EdgeServer, run: Run) -> None:
    program = run("subscribe.py", "orders", "returns")
    edge.wait_for_subscription("orders")
    edge.wait_for_subscription("returns")
    edge.publish("stock.moved", ["orders"], data_json='{"left":4}')
    wait_for(program, r'orders: stock\.moved \{"left":4\}')
    edge.drop_connections()
    wait_for(program, "unavailable .*")
    wait_for(program, "subscribed to (orders|returns) again")
    edge.close_connections(4001, "App does not exist")
    wait_for(program, "failed .*")
    assert "refused: " in program.communicate(timeout=GENEROUS_S)[1]
    assert program.returncode == 1


def test_presence(edge: EdgeServer, run: Run) -> None:
    program = run("presence.py", edge.auth_endpoint, "m_7", "presence-lobby")
    wait_for(program, "me: m_7, members: m_7")
    other = run("presence.py", edge.auth_endpoint, "m_8", "presence-lobby")
    wait_for(program, r"joined: m_8 \{'name': 'm_8'\}")
    wait_for(other, "me: m_8, members: m_7, m_8")
    interrupt(other)
    wait_for(program, "left: m_8, still here: m_7")
    interrupt(program)


def test_signin(edge: EdgeServer, run: Run) -> None:
    program = run("signin.py", edge.member_auth_endpoint, "m_7")
    wait_for(program, "signed in as m_7")
    edge.wait_for_subscription("#server-to-user-m_7")
    edge.send_to_member("m_7", "order.shipped", data_json='{"parcel":"P-55"}')
    wait_for(program, r'to me: order\.shipped \{"parcel":"P-55"\}')
    edge.disconnect_member("m_7")
    assert re.search(r"refused: .*4009", program.communicate(timeout=GENEROUS_S)[1])


def test_authorizer(edge: EdgeServer, run: Run) -> None:
    program = run("authorizer.py", "private-ledger")
    wait_for(program, "subscribed to private-ledger")
    edge.publish("booked", ["private-ledger"], data_json="42")
    wait_for(program, "private-ledger: booked 42")
    interrupt(program)
    assert not edge.journal("auth")
