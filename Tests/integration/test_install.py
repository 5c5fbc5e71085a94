"""The installed copy: what is where, and programs outside the tree that are compiled and run against it."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from paths import HEADER, ROOT

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

PROGRAM = r"""
#include <birdrealtime.h>
#include <stdio.h>

#if !BIRD_VERSION_AT_LEAST(0, 1, 0)
#error "too old"
#endif

int main(void) {
    bird_options *options = NULL;
    bird_client *client = NULL;
    bird_error *error = NULL;
    printf("check %s\n", bird_status_name(BIRD_VERSION_CHECK()));
    if (bird_options_create(&options) != BIRD_OK || bird_options_set(options, "app_key", "k", &error) != BIRD_OK ||
        bird_options_set(options, "region", "eu1", &error) != BIRD_OK ||
        bird_client_create(options, &client, &error) != BIRD_OK)
        return 1;
    bird_options_destroy(options);
    printf("header %s library %s\n", BIRD_VERSION_STRING, bird_version_string());
    return bird_client_destroy(client) == BIRD_OK ? 0 : 1;
}
"""


def make(goal: str, **variables: str | Path) -> None:
    # As if the library had been built a moment ago: it has, or these tests would not run.
    words = [f"{name}={value}" for name, value in variables.items()]
    subprocess.run(["make", "-s", "-C", ROOT, "-o", "all", goal, *words], check=True, capture_output=True)  # noqa: S607


def header_version(header: Path = HEADER) -> str:
    found = re.search(r'BIRD_VERSION_STRING "([\d.]+)"', header.read_text())
    assert found
    return found[1]


def files_below(directory: Path) -> dict[str, str]:
    """Every file, and what it points to if it is a link."""
    return {
        str(path.relative_to(directory)): os.readlink(path) if path.is_symlink() else ""
        for path in directory.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@dataclass(frozen=True)
class Installation:
    prefix: Path

    @property
    def header(self) -> Path:
        return self.prefix / "include/birdrealtime.h"

    def flags(self, *wanted: str) -> list[str]:
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        command = ["pkg-config", *wanted, "birdrealtime"]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.split()

    def compile(
        self, directory: Path, text: str, compiler: str = "gcc", standard: str = "c11"
    ) -> subprocess.CompletedProcess[str]:
        source = directory / ("program.cpp" if "++" in standard else "program.c")
        source.write_text(text)
        command: list[str | Path] = [compiler, f"-std={standard}", *STRICT, source, "-o", directory / "program"]
        return subprocess.run(
            [*command, *self.flags("--cflags", "--libs")], capture_output=True, text=True, cwd=directory, check=False
        )

    def run(self, directory: Path) -> list[str]:
        environment = {"LD_LIBRARY_PATH": str(self.prefix / "lib")}
        done = subprocess.run([directory / "program"], env=environment, check=True, capture_output=True, text=True)
        return done.stdout.splitlines()


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    make("install", PREFIX=tmp_path / "prefix")
    return Installation(tmp_path / "prefix")


def test_staged_installation_and_its_end(tmp_path: Path) -> None:
    where: dict[str, str | Path] = {"DESTDIR": tmp_path, "PREFIX": "/opt/bird", "LIBDIR": "/opt/bird/lib64"}
    version = header_version()
    major = version.partition(".")[0]
    expected = {
        "opt/bird/include/birdrealtime.h": "",
        f"opt/bird/lib64/libbirdrealtime.so.{version}": "",
        f"opt/bird/lib64/libbirdrealtime.so.{major}": f"libbirdrealtime.so.{version}",
        "opt/bird/lib64/libbirdrealtime.so": f"libbirdrealtime.so.{major}",
        "opt/bird/lib64/pkgconfig/birdrealtime.pc": "",
    }
    for _ in range(2):  # the second time over the first
        make("install", **where)
        assert files_below(tmp_path) == expected
    modes = {oct((tmp_path / name).stat().st_mode & 0o777) for name, target in expected.items() if not target}
    assert modes == {"0o644"}
    description = (tmp_path / "opt/bird/lib64/pkgconfig/birdrealtime.pc").read_text()
    assert str(tmp_path) not in description
    assert "prefix=/opt/bird\nlibdir=/opt/bird/lib64\n" in description
    assert f"Version: {version}\n" in description

    other = tmp_path / "opt/bird/lib64/libother.so"
    other.touch()
    make("uninstall", **where)
    assert files_below(tmp_path) == {str(other.relative_to(tmp_path)): ""}


@pytest.mark.parametrize(
    ("compiler", "standard"), [("gcc", "c99"), ("gcc", "c11"), ("gcc", "c17"), ("g++", "c++11"), ("g++", "c++17")]
)
def test_program_outside_the_tree(installation: Installation, tmp_path: Path, compiler: str, standard: str) -> None:
    done = installation.compile(tmp_path, PROGRAM, compiler, standard)
    assert done.returncode == 0, done.stderr
    version = header_version()
    assert installation.run(tmp_path) == ["check BIRD_OK", f"header {version} library {version}"]
    readelf: list[str | Path] = ["readelf", "-d", tmp_path / "program"]
    dynamic = subprocess.run(readelf, check=True, capture_output=True, text=True).stdout
    assert "[libbirdrealtime.so.0]" in dynamic
    assert "RUNPATH" not in dynamic
    assert installation.flags("--modversion") == [version]


@pytest.mark.parametrize("version", ["0.1.1", "0.2.0", "0.0.9", "1.0.0", "1.1.0"])
def test_header_that_the_library_cannot_serve(installation: Installation, tmp_path: Path, version: str) -> None:
    assert header_version() == "0.1.0", "the versions of this test were chosen for 0.1.0"
    major, minor, patch = map(int, version.split("."))
    text = installation.header.read_text()
    for pattern, value in (
        (r"(#define BIRD_VERSION_MAJOR) \d+", major),
        (r"(#define BIRD_VERSION_MINOR) \d+", minor),
        (r"(#define BIRD_VERSION_PATCH) \d+", patch),
        (r"(#define BIRD_VERSION_NUMBER) \d+", major * 1_000_000 + minor * 1_000 + patch),
        (r"(#define BIRD_VERSION_STRING) .+", f'"{version}"'),
    ):
        text, count = re.subn(pattern, rf"\1 {value}", text)
        assert count == 1, pattern
    installation.header.write_text(text)
    done = installation.compile(tmp_path, PROGRAM.replace("(0, 1, 0)", "(0, 0, 0)"))
    assert done.returncode == 0, done.stderr
    assert installation.run(tmp_path) == ["check BIRD_ERR_UNSUPPORTED", f"header {version} library 0.1.0"]


@pytest.mark.parametrize("wanted", ["0, 1, 1", "0, 2, 0", "1, 0, 0"])
def test_header_that_is_too_old_for_the_program(installation: Installation, tmp_path: Path, wanted: str) -> None:
    done = installation.compile(tmp_path, PROGRAM.replace("0, 1, 0", wanted))
    assert done.returncode != 0
    assert '#error "too old"' in done.stderr
