"""Finding and refusing libraries."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bird_realtime import BirdRealtime, BirdRealtimeError, LibraryError, _abi, _library


@pytest.fixture(autouse=True)
def not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_library, "_loaded", None)


def _build(path: Path, source: str, *arguments: str) -> Path:
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), *arguments]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def _refused(monkeypatch: pytest.MonkeyPatch, path: Path) -> str:
    monkeypatch.setenv(_library.ENVIRONMENT, str(path))
    with pytest.raises(LibraryError) as caught:
        _library.library()
    text = str(caught.value)
    assert f"{path} (from {_library.ENVIRONMENT}): " in text
    assert "the system's loader" not in text, "an explicit choice is not overruled"
    return text


def test_import_loads_nothing() -> None:
    code = (
        "import sys, threading, bird_realtime; from bird_realtime import _library; "
        "assert _library._loaded is None and threading.active_count() == 1; "
        "assert 'birdrealtime.so' not in open('/proc/self/maps').read()"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_missing_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "no such file" in _refused(monkeypatch, tmp_path / "nothing.so")


def test_every_path_is_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(_library.ENVIRONMENT, raising=False)
    package = tmp_path / "root" / "bindings" / "python" / "src" / "bird_realtime"
    monkeypatch.setattr(_library, "__file__", str(package / "_library.py"))
    (tmp_path / "root" / "include").mkdir(parents=True)
    (tmp_path / "root" / "include" / "birdrealtime.h").touch()
    monkeypatch.setattr(_abi, "SONAME", "libbirdrealtime-test-absent.so.0")
    with pytest.raises(LibraryError) as caught:
        _library.library()
    text = str(caught.value)
    assert f"{package}/{_abi.SONAME} (beside the package): no such file" in text
    assert f"{tmp_path}/root/build/lib/{_abi.SONAME} (built in the source tree): no such file" in text
    assert f"{_abi.SONAME} (through the system's loader): not found" in text
    assert _library.ENVIRONMENT in text
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, BirdRealtimeError)


def test_the_source_tree_needs_its_header(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(_library.ENVIRONMENT, raising=False)
    monkeypatch.setattr(_library, "__file__", str(tmp_path / "a" / "b" / "c" / "bird_realtime" / "_library.py"))
    assert [origin for origin, _ in _library._candidates()] == ["beside the package", "through the system's loader"]


@pytest.mark.parametrize("directory", ["/bird_realtime", "/app/bird_realtime", "/app/lib/bird_realtime"])
def test_a_package_close_to_the_root(monkeypatch: pytest.MonkeyPatch, directory: str) -> None:
    monkeypatch.delenv(_library.ENVIRONMENT, raising=False)
    monkeypatch.setattr(_library, "__file__", f"{directory}/_library.py")
    monkeypatch.setattr(_abi, "SONAME", "libbirdrealtime-test-absent.so.0")
    with pytest.raises(LibraryError, match=f"{directory}/{_abi.SONAME}"):
        _library.library()


def test_not_a_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("hello, this is no shared library, whatever its name says")
    assert "not a shared library for this process" in _refused(monkeypatch, text)


def test_other_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    header = bytearray(Path(sys.executable).resolve().read_bytes()[:64])
    header[18:20] = (40).to_bytes(2, sys.byteorder)
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(header)
    assert f"built for armv7l, but this machine is {platform.machine()}" in _refused(monkeypatch, foreign)


def test_missing_dependency(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needed = _build(tmp_path / "libneeded-by-test.so", "int needed(void) { return 1; }")
    source = "int needed(void); int bird_version_number(void) { return needed(); }"
    built = _build(tmp_path / "dependent.so", source, f"-L{tmp_path}", "-lneeded-by-test")
    needed.unlink()
    text = _refused(monkeypatch, built)
    assert "it needs libneeded-by-test.so, which is missing" in text
    assert f"ldd {built}" in text


def test_too_old_c_library() -> None:
    reason = "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not found (required by /x/libbirdrealtime.so.0)"
    assert _library.explain("/x/libbirdrealtime.so.0", reason).startswith("needs GLIBC_2.99, but this system has glibc")


def test_other_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert "does not run on glibc" in _library.report([])


def test_another_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built = _build(tmp_path / "other.so", "int other;")
    assert "not libbirdrealtime: it has no function bird_version_number" in _refused(monkeypatch, built)


def test_incomplete_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = f"int bird_version_number(void) {{ return {_abi.BIRD_VERSION_NUMBER}; }}"
    built = _build(tmp_path / "incomplete.so", source)
    assert "incomplete: " in _refused(monkeypatch, built)


def test_other_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built = _build(tmp_path / "newer.so", "int bird_version_number(void) { return 2003004; }")
    assert "version 2.3.4, but this package needs 0.1.0 or a later 0.1" in _refused(monkeypatch, built)


@pytest.mark.parametrize(("number", "fits"), [(1_000, True), (1_007, True), (999, False), (2_000, False), (0, False)])
def test_versions(number: int, fits: bool) -> None:
    assert (_library.version_problem(number) is None) is fits


def test_a_client_without_a_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(_library.ENVIRONMENT, os.fspath(tmp_path / "nothing.so"))
    with pytest.raises(LibraryError, match="no such file"):
        BirdRealtime("pk_test", region="us1")
