"""Host programs of every kind: what they notice of the library, how they load it, and what else they bring along."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from paths import PROGRAMS, ROOT
from scripted_server import DEADLINE_S
from tls_front import TlsFront

LIBRARY = Path(os.environ["BIRDREALTIME_LIBRARY"]).resolve()

LOADS = ["unused", "used", "used_lazily_and_globally", "loaded_by_a_thread", "two_copies", "two_namespaces"]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server that lets everybody connect, and is never the bottleneck."""
    with subprocess.Popen([PROGRAMS / "flood_server"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.terminate()


@pytest.fixture(scope="module")
def secure(authority: Authority, port: int) -> Iterator[TlsFront]:
    with TlsFront(authority.server_context("IP:127.0.0.1"), port) as front:
        yield front


def output(*command: str | Path) -> str:
    """Of a program that ends well and says nothing on stderr."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_rows(text: str) -> None:
    first, *rows = text.splitlines()
    assert first == "left in the buffer:"
    assert len(rows) == 26  # the library has written nothing of its own
    assert all(row[37:40] == "ok " for row in rows), text


def test_host_notices_nothing(port: int) -> None:
    check_rows(output(PROGRAMS / "host_check", f"127.0.0.1:{port}", "1000"))


def test_host_notices_nothing_with_tls(authority: Authority, secure: TlsFront) -> None:
    check_rows(output(PROGRAMS / "host_check", secure.host, "100", authority.file))


@pytest.mark.parametrize("case", LOADS)
def test_load(case: str, port: int, tmp_path: Path) -> None:
    """The host has functions of its own with the names of the library's internals."""
    copy = tmp_path / "copy.so"
    shutil.copyfile(LIBRARY, copy)
    output(PROGRAMS / "load_host", case, LIBRARY, f"127.0.0.1:{port}", copy)


@pytest.mark.parametrize("order", ["before", "after"])
def test_host_uses_libcurl_too(order: str, authority: Authority, secure: TlsFront) -> None:
    output(PROGRAMS / "curl_host", secure.host, authority.file, order)


@pytest.mark.parametrize("runtime", ["-static-stdlib", "-no-static-stdlib"])
def test_swift_host(runtime: str, port: int, tmp_path: Path) -> None:
    """A Swift runtime of the host's, linked statically or shared, beside the one in the library."""
    program = tmp_path / "swift_host"
    source = ROOT / "Tests/Hosts/swift_host.swift"
    link: list[str | Path] = ["-L", LIBRARY.parent, "-lbirdrealtime", "-Xlinker", "-rpath", "-Xlinker", LIBRARY.parent]
    flags: list[str | Path] = ["-swift-version", "6", "-warnings-as-errors", runtime, "-I", ROOT / "include", *link]
    flags += os.environ.get("BIRDREALTIME_SWIFT_FLAGS", "").split()  # of a sanitizer
    subprocess.run(["swiftc", *flags, "-o", program, source], check=True)  # noqa: S607
    has_shared = "libswiftCore.so" in output("ldd", program)
    assert has_shared == (runtime == "-no-static-stdlib")
    assert output(program, f"127.0.0.1:{port}") == "done\n"


@pytest.mark.parametrize("mode", ["thread", "queue", "loop", "host"])
def test_cpp_handlers_that_throw(mode: str, port: int) -> None:
    """The pattern of docs/embedding.md brings exceptions to the program."""
    said = output(PROGRAMS / "throwing_host", f"127.0.0.1:{port}", mode, "caught")
    assert said == "thrown: every time, caught: yes\n"


@pytest.mark.parametrize("mode", ["thread", "queue"])
def test_cpp_handler_that_is_noexcept_and_throws(mode: str, port: int) -> None:
    """The program ends where the mistake is, and not later in the library."""
    command: list[str | Path] = [PROGRAMS / "throwing_host", f"127.0.0.1:{port}", mode, "uncaught"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)
    assert done.returncode == -signal.SIGABRT
    assert "on purpose" in done.stderr
