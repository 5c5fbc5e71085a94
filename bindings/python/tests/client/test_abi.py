"""The ctypes declarations against include/birdrealtime.h."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from bird_realtime import _abi

HEADER = Path(__file__).parents[4] / "include" / "birdrealtime.h"

# Constants that have no meaning for a program that drains: text and macros for C, and ctypes has SIZE_MAX in no type.
ONLY_IN_C = {"BIRD_VERSION_STRING", "BIRD_NUL"}


@pytest.fixture(scope="module")
def source() -> str:
    return HEADER.read_text()


@pytest.fixture(scope="module")
def code(source: str) -> str:
    return re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)


def test_the_library_is_given_no_function() -> None:
    """BND-01: what C cannot call cannot have been collected; everything comes through a queue."""
    package = Path(_abi.__file__).parent
    makers = re.compile(r"\b(C|PY)FUNCTYPE\b|\bpy_object\b")
    assert [path.name for path in package.rglob("*.py") if makers.search(path.read_text())] == []


def test_constants(code: str) -> None:
    declared = {
        name: int(value.strip("()u"))
        for name, value in re.findall(r"^#define (BIRD_\w+) ((?:\(-\d+\))|(?:\d+u?))\s*$", code, re.MULTILINE)
    }
    ours = {name: value for name, value in vars(_abi).items() if name.startswith("BIRD_")}
    others = set(re.findall(r"^#define (BIRD_\w+) ", code, re.MULTILINE)) - declared.keys()
    assert ours == declared
    assert others == ONLY_IN_C


def _ctype(declaration: str) -> type | None:
    """The ctypes type that stands for a C parameter or result."""
    pointers = declaration.count("*")
    words = re.sub(r"\bconst\b|\*", " ", declaration).split()
    base = words[0]
    plain: dict[str, type] = {
        "bird_status": ctypes.c_int32,
        "int32_t": ctypes.c_int32,
        "int64_t": ctypes.c_int64,
        "uint32_t": ctypes.c_uint32,
        "uint64_t": ctypes.c_uint64,
        "size_t": ctypes.c_size_t,
        "bird_handler": ctypes.c_void_p,
        "bird_log_handler": ctypes.c_void_p,
        "bird_destructor": ctypes.c_void_p,
    }
    if pointers == 0:
        return None if base == "void" else plain[base]
    if pointers == 1:
        if base == "char":
            return ctypes.c_char_p
        if base in plain:
            return ctypes.POINTER(plain[base])
        filled = {"bird_statistics": _abi.StatisticsCounters, "bird_option": _abi.OptionRow}
        if base in filled:
            return ctypes.POINTER(filled[base])
        return ctypes.c_void_p
    return ctypes.POINTER(ctypes.c_void_p)


def test_functions(code: str) -> None:
    declared = {}
    for result, name, parameters in re.findall(r"^([\w ]+?[ *]+)(bird_\w+)\(([^)]*)\);", code, re.MULTILINE):
        if result.startswith("typedef"):
            continue
        arguments = [] if parameters.strip() == "void" else [_ctype(each) for each in parameters.split(",")]
        # Payloads are bytes objects, which ctypes passes for const void * only as c_char_p.
        if name in ("bird_channel_trigger", "bird_data_is_json"):
            arguments = [ctypes.c_char_p if each is ctypes.c_void_p and i else each for i, each in enumerate(arguments)]
        if name == "bird_data_is_json":
            arguments[0] = ctypes.c_char_p
        # An id may contain a NUL, at which ctypes would cut a c_char_p.
        returned = ctypes.c_void_p if name == "bird_members_id" else _ctype(result)
        declared[name] = (returned, *arguments)
    assert declared.keys() == _abi.FUNCTIONS.keys()
    assert {name: types for name, types in declared.items() if types != _abi.FUNCTIONS[name]} == {}


def test_structs(code: str) -> None:
    typedefs = re.findall(r"typedef struct (bird_\w+) \{(.*?)\} bird_\w+;", code, re.DOTALL)
    typedefs += re.findall(r"^struct (bird_\w+) \{(.*?)\};", code, re.DOTALL | re.MULTILINE)
    fields = {name: re.findall(r"(\w+);", body) for name, body in typedefs}
    ours = {name: [field[0] for field in struct._fields_] for name, struct in _abi.STRUCTS.items()}
    assert ours == fields


def test_layout_of_structs(tmp_path: Path) -> None:
    lines = [
        f'printf("{name} {field[0]} %zu\\n", offsetof(struct {name}, {field[0]}));'
        for name, struct in _abi.STRUCTS.items()
        for field in struct._fields_
    ]
    lines += [f'printf("{name} - %zu\\n", sizeof(struct {name}));' for name in _abi.STRUCTS]
    program = tmp_path / "layout.c"
    program.write_text(
        '#include <stdio.h>\n#include "birdrealtime.h"\nint main(void) {\n' + "\n".join(lines) + "\nreturn 0;\n}\n"
    )
    built = tmp_path / "layout"
    subprocess.run(["gcc", "-std=c11", f"-I{HEADER.parent}", str(program), "-o", str(built)], check=True)
    printed = subprocess.run([str(built)], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
    ours = [
        f"{name} {field[0]} {getattr(struct, field[0]).offset}"
        for name, struct in _abi.STRUCTS.items()
        for field in struct._fields_
    ]
    ours += [f"{name} - {ctypes.sizeof(struct)}" for name, struct in _abi.STRUCTS.items()]
    assert ours == printed


def test_names_of_values(source: str) -> None:
    assert _abi.STATUS_NAMES[_abi.BIRD_ERR_NAME] == "BIRD_ERR_NAME"
    assert (
        dict(enumerate(["initialized", "connecting", "connected", "unavailable", "disconnected", "failed"]))
        == _abi.STATE_NAMES
    )
    assert (
        dict(enumerate(["idle", "authorizing", "pending", "subscribed", "failed", "unsubscribed"]))
        == _abi.CHANNEL_STATE_NAMES
    )
    assert _abi.AREA_NAMES[_abi.BIRD_AREA_SIGNIN] == "signin"
    assert _abi.LOG_AREA_NAMES[_abi.BIRD_LOG_AREA_WIRE] == "wire"
