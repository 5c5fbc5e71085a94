"""`bird-realtime edge` as a program."""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from raw_client import TIMEOUT_S, RawClient

from bird_realtime.edge import command
from bird_realtime.edge.config import EdgeConfig
from bird_realtime.edge.controls import Controls
from bird_realtime.testing import EdgeServer

COMMAND = [sys.executable, "-m", "bird_realtime", "edge"]


@contextmanager
def running(*options: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def refused(*options: str) -> str:
    """What the command says on standard error when it cannot start."""
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ready_line_and_clean_end(number: signal.Signals) -> None:
    master_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    options = ["--json", "--port", "0", "--app-key", "pk_cli", "--app-secret", "sk_cli", "--client-events"]
    options += ["--activity-timeout", "7", "--member", "m_7=Noor", "--encryption-master-key", master_key]
    with running(*options) as process:
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        assert facts["ws_host"] == f"127.0.0.1:{facts['port']}"
        assert facts["encryption_master_key"] == master_key
        assert (facts["app_key"], facts["app_secret"], facts["pid"]) == ("pk_cli", "sk_cli", process.pid)
        edge = EdgeServer(EdgeConfig(port=facts["port"], app_key="pk_cli", app_secret="sk_cli"))
        with RawClient(edge, facts["ws_url"]) as client:
            handshake = client.receive_handshake()
            assert handshake["activity_timeout"] == 7
            client.connection_id = handshake["connection_id"]
            assert client.subscribe("private-a")["event"] == "bird_internal:subscription_succeeded"
            process.send_signal(number)
            assert client.receive_close() == (1001, "edge stops")
        assert process.wait(TIMEOUT_S) == 0
        assert process.stdout.read() == ""
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_banner() -> None:
    with running("--port", "0", "--connection-counting", "--member", "m_7") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(12)]
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 0
    text = "".join(lines)
    assert "ready" in lines[0]
    assert "ws://127.0.0.1:" in text
    assert "sk_local_not_a_real_secret" in text
    assert "m_7" in text
    assert "on: connection-counting; off: client-events" in text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--port", "x"], "--port"),
        (["--port", "70000"], "--port"),
        (["--app-id", "rap_x"], "--app-id"),
        (["--app-key", "a:b"], "--app-key"),
        (["--app-secret", ""], "--app-secret"),
        (["--api-key", ""], "--api-key"),
        (["--activity-timeout", "0"], "--activity-timeout"),
        (["--authorized-deadline", "-1"], "--authorized-deadline"),
        (["--connection-count-events"], "--connection-count-events"),
        (["--connection-quota", "-1"], "--connection-quota"),
        (["--member", "a b"], "--member"),
        (["--watch", "m_7"], "--watch"),
        (["--watchlist-limit-members", "-1"], "--watchlist-limit-members"),
        (["--client-events-per-s", "0"], "--client-events-per-s"),
        (["--client-event-sender-key", "event"], "--client-event-sender-key"),
        (["--cache-ttl", "1801"], "--cache-ttl"),
        (["--encryption-master-key", "%"], "--encryption-master-key"),
        (["--encryption-master-key", "AAAA"], "--encryption-master-key"),
        (["--tls-cert", "/nowhere.pem"], "--tls-cert"),
        (["--tls-key", "key.pem"], "--tls-key"),
        (["--host", "203.0.113.1"], "--host"),
    ],
)
def test_wrong_input_names_the_option(options: list[str], named: str) -> None:
    assert named in refused(*options)


def test_the_documentation_has_every_option_and_every_control() -> None:
    text = (Path(__file__).parents[4] / "docs/edge.md").read_text()
    parser = argparse.ArgumentParser(add_help=False)
    command.configure(parser)
    options = {option for action in parser._actions for option in action.option_strings}
    controls = {name for name in dir(Controls) if getattr(getattr(Controls, name), "is_control", False)}
    assert len(controls) > 25
    assert {option for option in options if not re.search(f"`{option}[` ]", text)} == set()
    assert {control for control in controls if f"`{control}`" not in text} == set()


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port} (--host, --port)" in refused("--port", str(port))


def test_nothing_loads_the_native_library_and_the_command_needs_no_aiohttp() -> None:
    """The edge's modules import without ctypes ever opening the library, the command line without aiohttp."""
    code = (
        "import sys, bird_realtime.cli\n"
        "assert 'aiohttp' not in sys.modules\n"
        "import ctypes\n"
        "def fail(*a, **k): raise AssertionError('a library was loaded')\n"
        "ctypes.CDLL = fail\n"
        "import bird_realtime.testing, bird_realtime.edge.server\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=TIMEOUT_S)


def test_without_aiohttp_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['aiohttp'] = None; from bird_realtime.cli import main; sys.exit(main(['edge']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 1
    assert "bird-realtime[edge]" in done.stderr
