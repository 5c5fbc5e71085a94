from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_edge import CommandEdge
from paths import BUILT_SWIFT_PROGRAMS, CLIENT_SCRIPT, PYTHON, PYTHON_CLIENT, PYTHON_SOURCES, ROOT, SWIFT_PROGRAMS
from program import Program
from script_client import ScriptClient
from scripted_server import ScriptedServer

sys.path.insert(0, str(PYTHON_SOURCES))
os.environ["PYTHONPATH"] = str(PYTHON_SOURCES)
for variable in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):  # they are for this machine's programs
    os.environ.pop(variable, None)
    os.environ.pop(variable.upper(), None)
os.environ.setdefault("BIRDREALTIME_LIBRARY", str(ROOT / "build/lib/libbirdrealtime.so"))
# A shell that runs the tests in the background has them ignore SIGINT, and their programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

FACES: dict[str, list[str | Path]] = {"c": [CLIENT_SCRIPT], "python": [PYTHON, PYTHON_CLIENT]}

# Only a client that cannot be reached waits long; these tests want to see the next attempt soon.
QUICK_BACKOFF = {"backoff_base_ms": 20, "backoff_max_ms": 100, "flap_guard": 0}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def auth() -> Iterator[ScriptedServer]:
    """A second scripted server, for the authorizer's side."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="session")
def command_edge() -> Iterator[CommandEdge]:
    with CommandEdge() as running:
        yield running


@pytest.fixture(scope="session")
def swift_programs() -> None:
    """The programs below SWIFT_PROGRAMS."""
    if BUILT_SWIFT_PROGRAMS is None:
        subprocess.run(["swift", "build", "--quiet", "--jobs", "2"], check=True, cwd=ROOT)  # noqa: S607


StartProgram = Callable[..., Program]


@pytest.fixture
def run_swift(swift_programs: None) -> Iterator[StartProgram]:
    """Starts programs in Swift, which end with the test."""
    with ExitStack() as stack:

        def begin(name: str, *arguments: str) -> Program:
            program = Program([SWIFT_PROGRAMS / name, *arguments])
            stack.callback(program.close)
            return program

        yield begin


StartClient = Callable[..., ScriptClient]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "c_only(reason): the Python package is not asked as well")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that starts a client runs on both faces unless it says why not."""
    if "face" in metafunc.fixturenames:
        is_for_c = metafunc.definition.get_closest_marker("c_only") is not None
        metafunc.parametrize("face", ["c"] if is_for_c else list(FACES))


@pytest.fixture
def start(face: str) -> Iterator[StartClient]:
    """Starts clients that are not connected yet; at the end each must end well."""
    with ExitStack() as stack:

        def begin(server: ScriptedServer, **options: str | int) -> ScriptClient:
            defaults: dict[str, str | int] = {
                "app_key": "pk_test",
                "ws_host": server.host,
                "allow_insecure": 1,
                **QUICK_BACKOFF,
            }
            client = ScriptClient(FACES[face], **{**defaults, **options})
            stack.callback(client.finish)
            assert client.created["status"] == "BIRD_OK", client.created
            return client

        yield begin


@pytest.fixture
def connect(start: StartClient) -> StartClient:
    """The same, on their way to the server."""

    def begin(server: ScriptedServer, **options: str | int) -> ScriptClient:
        client = start(server, **options)
        client.do("connect")
        return client

    return begin
