"""The process ends while the library is at work: no crash, the right status, at once."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from paths import HARNESS, PROGRAMS
from scripted_server import DEADLINE_S, refusing_port
from test_harness import MODES
from tls_front import TlsFront

# A crash is a matter of chance: set BIRD_EXIT_RUNS to try more often.
RUNS = int(os.environ.get("BIRD_EXIT_RUNS", "12"))
AT_ONCE = 3
EXIT_S_MAX = 1.0

STATUS = 3
ENDINGS = {
    "return": 0,
    "thread": STATUS,
    "handler": STATUS,
    "destroying": STATUS,
    "_exit": STATUS,
    "quick_exit": STATUS,
    "abort": -signal.SIGABRT,
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture(scope="module")
def flood(authority: Authority) -> Iterator[TlsFront]:
    with subprocess.Popen([PROGRAMS / "flood_server"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        with TlsFront(authority.server_context("IP:127.0.0.1"), int(server.stdout.readline())) as front:
            yield front
        server.terminate()


@pytest.fixture(scope="module")
def dropping(authority: Authority) -> Iterator[TlsFront]:
    """Lets clients in by TLS and drops them."""
    with refusing_port() as port, TlsFront(authority.server_context("IP:127.0.0.1"), port) as front:
        yield front


def end_once(command: list[str | Path], wanted: int) -> float:
    """Seconds from the beginning of the end."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)
    ended = time.monotonic()
    assert (done.returncode, done.stderr) == (wanted, ""), done
    first, *others = done.stdout.splitlines()
    assert others == (["aborted"] if wanted == -signal.SIGABRT else [])
    return ended - float(first)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("situation", ["flood", "connecting"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_end(request: pytest.FixtureRequest, authority: Authority, ending: str, situation: str, mode: str) -> None:
    front: TlsFront = request.getfixturevalue("flood" if situation == "flood" else "dropping")
    options = ["allow_insecure=0", f"ca_file={authority.file}", "backoff_base_ms=1", "backoff_max_ms=1"]
    command: list[str | Path] = [HARNESS, "process_ends", front.host, mode, situation, ending, *options]
    # Each delivery mode takes its part of the runs; the ways that run no exit handler have little that could go wrong.
    runs = max(1, RUNS // (3 if ENDINGS[ending] in (0, STATUS) and not ending.endswith("_exit") else 12))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        took = [pool.submit(end_once, command, ENDINGS[ending]) for _ in range(runs)]
        seconds = sorted(future.result() for future in took)
    # The last one may have waited for this process, which serves the others meanwhile; nothing waits for long.
    assert seconds[len(seconds) // 2] < EXIT_S_MAX
    assert seconds[-1] < 5 * EXIT_S_MAX
