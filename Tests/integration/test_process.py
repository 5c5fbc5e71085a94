"""Cases of the harness about forks, signals and limits over TLS, and those that need a helper outside the process."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from command_edge import CommandEdge
from name_server import NameServer
from paths import HARNESS, HEADER, ROOT
from scripted_server import DEADLINE_S, refusing_port
from test_harness import MODES
from tls_front import TlsFront

HANDLES = "options|client|channel|queue|loop|batch|request"
OVER_TLS = [
    "child_has_no_use_for_inherited_handles",
    "child_leaves_inherited_handles_alone",
    "child_returns_from_the_handler_that_forked",
    "exec_inherits_no_files",
    "fork_in_a_handler",
    "fork_many_times_in_a_row",
    "fork_of_a_child",
    "fork_while_connecting",
    "fork_while_threads_call",
    "calls_are_not_disturbed_by_signals",
    "peers_that_go_away_raise_no_signal",
    "connect_without_files",
    "host_closes_every_fd",
    "host_reuses_every_fd",
    "memory_may_be_scarce",
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture(scope="module")
def secure_edge(authority: Authority, command_edge: CommandEdge) -> Iterator[list[str]]:
    """The arguments of a case: HOST:PORT, and the options that go with it; the mode belongs in between."""
    with TlsFront(authority.server_context("IP:127.0.0.1"), command_edge.server.port) as front:
        yield [front.host, "allow_insecure=0", f"ca_file={authority.file}"]


def run(*arguments: str) -> None:
    done = subprocess.run([HARNESS, *arguments], capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OVER_TLS)
def test_case_over_tls(name: str, mode: str, secure_edge: list[str]) -> None:
    host, *options = secure_edge
    run(name, host, mode, *options)


@pytest.mark.parametrize("mode", MODES)
def test_standard_streams_stay_closed_over_tls(mode: str, secure_edge: list[str]) -> None:
    host, *options = secure_edge
    run("standard_streams_stay_closed", host, mode, *options, f"auth_endpoint=https://{host}/")


@pytest.mark.parametrize("mode", MODES)
def test_resolve_without_threads(mode: str, authority: Authority, command_edge: CommandEdge, tmp_path: Path) -> None:
    is_over = threading.Event()

    def answer(names: NameServer) -> None:
        while not is_over.is_set():
            if question := names.next_within(0.05):
                question.answer("127.0.0.1")

    context = authority.server_context("DNS:edge.test")
    with NameServer(tmp_path) as names, TlsFront(context, command_edge.server.port) as front:
        answering = threading.Thread(target=answer, args=[names])
        answering.start()
        try:
            command = [*names.prefix, HARNESS, "resolve_without_threads", command_edge.host, mode]
            command += [f"ws_host=edge.test:{front.port}", "allow_insecure=0", f"ca_file={authority.file}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)
        finally:
            is_over.set()
            answering.join()
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_authorizers_that_go_away(scheme: str, mode: str, authority: Authority, command_edge: CommandEdge) -> None:
    case = ["authorizers_that_go_away_raise_no_signal", command_edge.host, mode]
    # A TLS server with nothing behind it, asked in plaintext or by TLS: it ends each connection.
    with refusing_port() as port, TlsFront(authority.server_context("IP:127.0.0.1"), port) as front:
        run(*case, f"auth_endpoint={scheme}://{front.host}/auth", f"ca_file={authority.file}")


@pytest.mark.parametrize("mode", MODES)
def test_stopped_and_continued(mode: str, secure_edge: list[str]) -> None:
    """As a debugger or a shell does: system calls return early for that, signal handlers or not."""
    host, *options = secure_edge
    command: list[str | Path] = [HARNESS, "stream_for_a_while", host, mode, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        while program.poll() is None:
            program.send_signal(signal.SIGSTOP)
            program.send_signal(signal.SIGCONT)
        assert program.stdout is not None
        assert program.returncode == 0, program.stdout.read()


def test_every_call_is_tried_in_a_child() -> None:
    """Each function of the header that takes a handle is called with an inherited one."""
    comments = re.compile(r"/\*.*?\*/", re.DOTALL)
    declarations = re.findall(r"\b(bird_\w+)\(([^)]*)\);", comments.sub("", HEADER.read_text()))
    takes_handle = re.compile(rf"\bbird_(?:{HANDLES}) \*\w")
    wanted = {name for name, parameters in declarations if takes_handle.search(parameters)}
    assert len(wanted) > 40
    # Destroying is what may be done; world_close() does some of it.
    source = "".join((ROOT / "Tests/CHarness" / name).read_text() for name in ("cases_fork.c", "world.c"))
    assert wanted <= set(re.findall(r"\bbird_\w+", source))
