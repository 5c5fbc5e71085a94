"""Payloads give the same value with orjson and without it: the one that Python's json gives."""

from __future__ import annotations

import json
import random
import sys
import types
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from bird_realtime import _json

by_orjson = _json._by_orjson(orjson.loads)
by_python = _json._value_or_text


def refuse(constant: str) -> Any:
    raise ValueError(constant)


def expected(payload: bytes) -> Any:
    """What they must give, said with nothing but the documented decoder."""
    try:
        return json.loads(payload.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return payload.decode()


def assert_same(payload: bytes) -> None:
    # The texts of values show also what == does not: 1 and 1.0 and True, -0.0, the order of keys.
    value = repr(expected(payload))
    assert repr(by_orjson(payload)) == value, payload
    assert repr(by_python(payload)) == value, payload


NUMBERS = [
    "-0", "0", "-0.0", "00", "01", "-", "+1", "1.", ".5", "0e0", "1E5", "1e+05", "0x1", "1_0", "1e400", "-1e400",
    "1e-400",
    str(2**63 - 1), str(2**63), str(2**64 - 1), str(2**64), str(-(2**63)), str(-(2**63) - 1), "9" * 19, "9" * 20,
    "-" + "9" * 19, "1" * 18, "1" * 40, "1" * 5000, "0." + "1" * 30, "1" * 25 + "e3", "1" * 25 + ".5", "2.5e-324",
    "0.30000000000000004", "123456789012345678.5", "9007199254740993", "NaN", "Infinity", "-Infinity", "nan",
]  # fmt: skip
STRINGS = [
    '""', '"x"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\ude00\\ud83d"', '"\\u0000"', '"\\u00e9"', '"é"', '"\x7f"',
    '"\x1f"', '"\u2028"', '"\\/\\b\\f\\n\\r\\t\\\\\\""', '"\\x"', '"\\u12"', '"' + "9" * 30 + '"',
    '"', "'x'", '"😀"', '"\t"',
]  # fmt: skip
OTHERS = [
    "",
    " ",
    "null",
    "true",
    "false",
    "True",
    "[]",
    "{}",
    "[,]",
    "{,}",
    "[1,]",
    '{"a":1,}',
    "{1:2}",
    "\ufeff1",
    "\u00a01",
]


@pytest.mark.parametrize(
    "wrap", ["{}", "[{}]", ' {{"a": {} , "b":[{}]}}\n', '{{"a":1,"b":{},"a":{}}}', "{} 1", "\t{}\r\n"]
)
def test_corners(wrap: str) -> None:
    for text in NUMBERS + STRINGS + OTHERS:
        assert_same(wrap.format(text, text).encode())


@pytest.mark.parametrize("shift", range(7))
def test_long_integers_are_seen_wherever_they_stand(shift: int) -> None:
    for digits in range(15, 24):
        assert_same(b" " * shift + b"[-" + b"9" * digits + b"]")
        assert_same(b'{"' + b"k" * shift + b'":[1,' + b"8" * digits + b",2]}")


@pytest.mark.parametrize(("open_", "close"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [100, 500, 100_000])
def test_nesting(open_: str, close: str, depth: int) -> None:
    assert_same((open_ * depth + "1" + close * depth).encode())
    assert_same((open_ * depth).encode())


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


SCALARS = [text for text in NUMBERS + STRINGS if is_json(text)]


class Maker:
    """JSON texts with a liking for what parsers disagree about."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  the same texts in each run

    def text(self, depth: int = 0) -> str:
        draw = self._random
        kind = draw.randrange(7 if depth < 5 else 5)
        if kind == 0:
            return draw.choice(SCALARS)
        if kind == 1:
            return draw.choice(("-", "")) + str(draw.getrandbits(draw.randrange(1, 140)))
        if kind == 2:
            return f"{draw.random()}e{draw.randrange(-340, 307)}"
        if kind == 3:
            return json.dumps("".join(draw.choice('"\\\x7fé\u2028😀 9') for _ in range(draw.randrange(30))))
        if kind == 4:
            return draw.choice(("null", "true", "false"))
        blank = draw.choice(("", "", " ", "\n\t"))
        parts = [self.text(depth + 1) for _ in range(draw.randrange(5))]
        if kind == 5:
            return "[" + ("," + blank).join(parts) + blank + "]"
        return "{" + ",".join(f'"{draw.choice("abcé")}":{blank}{part}' for part in parts) + "}"

    def damaged(self, text: str) -> str:
        at = self._random.randrange(len(text) + 1)
        return text[:at] + self._random.choice(("", '"', "\\", ",", "0", "9" * 19, "}", "\0", " ")) + text[at + 1 :]


@pytest.mark.parametrize("seed", range(10))
def test_any_text(seed: int) -> None:
    maker = Maker(seed)
    for _ in range(1_000):
        text = maker.text()
        assert is_json(text)
        assert_same(text.encode())
        assert_same(maker.damaged(text).encode())


def module(version: str) -> types.ModuleType:
    made = types.ModuleType("orjson")
    made.__dict__.update(__version__=version, loads=orjson.loads)
    return made


@pytest.mark.parametrize(
    ("installed", "is_used"),
    [
        (None, False),
        (module("3.9.14"), False),
        (module("3.9.15"), True),
        (module("3.10.0rc1"), True),
        (module("10.0.0"), True),
        (module("unknown"), False),
        (orjson, True),
    ],
)
def test_orjson_is_used_when_it_is_there(
    monkeypatch: pytest.MonkeyPatch, installed: types.ModuleType | None, is_used: bool
) -> None:
    monkeypatch.setitem(sys.modules, "orjson", installed)
    chosen: Callable[[bytes], Any] = _json._choose()
    assert (chosen is not by_python) == is_used
    assert chosen(b'{"a":[1,18446744073709551616]}') == {"a": [1, 2**64]}
