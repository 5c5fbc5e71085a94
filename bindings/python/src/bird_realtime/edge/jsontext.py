"""JSON whose values keep their text, so that the edge relays numbers and escapes exactly as they came."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\n\r]*")


class JSONTextError(ValueError):
    """The text is not the JSON that was asked for; the message says where."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def parse(text: str) -> Any:
    """The value of `text`, strictly by RFC 8259."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise JSONTextError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise JSONTextError(str(error)) from None


def dump(value: object) -> str:
    """`value` as compact JSON that can always be sent as UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate travels as an escape
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def has_half_pair(text: str) -> bool:
    """Whether a string in the JSON `text`, which `parse` accepts, has half of a surrogate pair: no character, and
    not UTF-8 (RFC 8259 section 8.2)."""
    if not _HALF.search(text):
        return False
    try:
        json.dumps(parse(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def object_members(text: str) -> dict[str, str]:
    """The members of the JSON object `text`, each value as its own text; the last of equal keys wins."""
    if not isinstance(parse(text), dict):
        raise JSONTextError("expected a JSON object")
    members: dict[str, str] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, at = _decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, at = _decoder.raw_decode(text, start)
        members[key] = text[start:at]
        at = _next(text, at)
    return members


def array_items(text: str) -> list[str]:
    """The items of the JSON array `text`, each as its own text."""
    if not isinstance(parse(text), list):
        raise JSONTextError("expected a JSON array")
    items: list[str] = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "]":
        start = at
        _, at = _decoder.raw_decode(text, start)
        items.append(text[start:at])
        at = _next(text, at)
    return items


# The walkers below run on text that `parse` has accepted, so they need not check what they pass.


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _next(text: str, at: int) -> int:
    """From behind a value to the next key or item, or to the closing bracket."""
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
