"""What scripts/abi takes for a break of the binary interface, and what for an addition."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from paths import HEADER, ROOT

ABI = ROOT / "scripts/abi"

BREAKS = {
    "a function is removed": ("bird_status bird_queue_wake(bird_queue *queue);", ""),
    "an argument has another type": (
        "bird_queue_wait(bird_queue *queue, int64_t timeout_ms);",
        "bird_queue_wait(bird_queue *queue, int32_t timeout_ms);",
    ),
    "a handle is of another kind": ("bird_queue_wake(bird_queue *queue);", "bird_queue_wake(bird_client *queue);"),
    "a result has another type": ("int32_t bird_error_code(", "int64_t bird_error_code("),
    "a callback has another argument": (
        "(*bird_handler)(const bird_record *record, void *user_data);",
        "(*bird_handler)(const bird_record *record, int kind, void *user_data);",
    ),
    "a field has another type": ("int32_t will_retry;", "int64_t will_retry;"),
    "a field has another sign": ("    int32_t operation;", "    uint32_t operation;"),
    "a field has another name": ("    int32_t current;", "    int32_t present;"),
    "a field is added before others": ("    int32_t previous;", "    int32_t added;\n    int32_t previous;"),
    "fields change places": (
        "    int32_t previous;\n    int32_t current;",
        "    int32_t current;\n    int32_t previous;",
    ),
    "a struct without struct_size grows": ("} bird_header;", "    int64_t added;\n} bird_header;"),
    "a constant has another value": ("#define BIRD_NETWORK_DOWN 2 ", "#define BIRD_NETWORK_DOWN 4 "),
    "a constant is removed": ("#define BIRD_NETWORK_DOWN 2 ", "// "),
    "a status has another width": ("typedef int32_t bird_status;", "typedef int64_t bird_status;"),
}
ADDITIONS = {
    "a function": ("bird_status bird_queue_wake(", "bird_status bird_queue_added(void);\nbird_status bird_queue_wake("),
    "a field at the end": ("} bird_completion;", "    int64_t added;\n} bird_completion;"),
    "a constant": ("#define BIRD_NETWORK_DOWN ", "#define BIRD_NETWORK_ADDED 4\n#define BIRD_NETWORK_DOWN "),
    "a struct": ("typedef struct bird_failure", "struct bird_added {\n    int kind;\n};\ntypedef struct bird_failure"),
}
NEW_VERSION = ("#define BIRD_VERSION_MINOR ", "#define BIRD_VERSION_MINOR 9")


def changed(directory: Path, *changes: tuple[str, str]) -> Path:
    """A copy of the header, each text in it replaced once."""
    text = HEADER.read_text()
    for old, new in changes:
        assert old in text, f"the header has no {old!r} any more"
        text = text.replace(old, new, 1)
    header = directory / "birdrealtime.h"
    header.write_text(text)
    return header


def abi(*arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run([ABI, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the header as it is: what is added after the committed one is no subject here."""
    path = tmp_path_factory.mktemp("abi") / "snapshot.abi"
    assert abi("--take", "--snapshot", path)[0] == 0
    return path


@pytest.mark.parametrize("change", BREAKS.values(), ids=BREAKS)
def test_a_break_fails(change: tuple[str, str], snapshot: Path, tmp_path: Path) -> None:
    status, output = abi("--header", changed(tmp_path, change), "--snapshot", snapshot)
    assert status == 1, output
    assert "would break. Take that back; or raise the version in include/birdrealtime.h" in output


@pytest.mark.parametrize("change", ADDITIONS.values(), ids=ADDITIONS)
def test_an_addition_passes_and_is_told(change: tuple[str, str], snapshot: Path, tmp_path: Path) -> None:
    status, output = abi("--header", changed(tmp_path, change), "--snapshot", snapshot)
    assert status == 0, output
    assert "[A] 'function" in output
    assert "abi: only additions; before they are released, run make abi" in output


def test_a_break_beside_additions_is_in_no_snapshot(snapshot: Path, tmp_path: Path) -> None:
    changes = [*ADDITIONS.values(), BREAKS["a field has another sign"]]
    before = snapshot.read_bytes()
    assert abi("--header", changed(tmp_path, *changes), "--snapshot", snapshot, "--take")[0] == 1
    assert snapshot.read_bytes() == before


def test_a_new_version_needs_and_gets_a_new_snapshot(snapshot: Path, tmp_path: Path) -> None:
    header = changed(tmp_path, NEW_VERSION, BREAKS["a function is removed"])
    own = tmp_path / "own.abi"
    own.write_bytes(snapshot.read_bytes())
    status, output = abi("--header", header, "--snapshot", own)
    assert status == 1
    assert "run make abi" in output
    assert abi("--header", header, "--snapshot", own, "--take")[0] == 0
    assert abi("--header", header, "--snapshot", own)[0] == 0
