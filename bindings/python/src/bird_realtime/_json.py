"""JSON as the wire means it: RFC 8259, without the NaN and Infinity that Python's json accepts."""

from __future__ import annotations

import json
import re
from typing import Any, Callable

from . import _abi
from .errors import InvalidArgument

#: before it, deeply nested JSON could crash orjson
_ORJSON_VERSION_MIN = (3, 9, 15)
#: an integer that does not fit into 64 bits has at least so many digits, and orjson makes a float of it
_LONG_DIGITS = 19

_BLANKS = " \t\n\r"
_digits_as_zeros = bytes.maketrans(b"123456789", b"000000000")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).raw_decode


def parse(text: str) -> Any:
    """The value of a JSON text. ValueError: it is none, or is nested deeper than Python can follow."""
    text = text.strip(_BLANKS)
    try:
        value, end = _decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError(f"more than one value: {text[end : end + 20]!r}")
    return value


def _value_or_text(payload: bytes) -> Any:
    """What a payload means to a program: its value if it is JSON, else its text."""
    text = payload.decode()
    try:
        return parse(text)
    except ValueError:
        return text


def _by_orjson(loads: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """The same by orjson, but where that would not give the same value."""

    def value_or_text(payload: bytes) -> Any:
        try:
            value = loads(payload)
        except ValueError:
            # No JSON, or what orjson refuses: lone surrogates, numbers beyond a float.
            return _value_or_text(payload)
        if type(value) is not str and _has_long_digits(payload):
            return _value_or_text(payload)
        return value

    return value_or_text


def _has_long_digits(payload: bytes) -> bool:
    # 19 digits in a row contain three of every sixth bytes; to look at those first takes half the time.
    if b"000" not in payload[::6].translate(_digits_as_zeros):
        return False
    return b"0" * _LONG_DIGITS in payload.translate(_digits_as_zeros)


def _choose() -> Callable[[bytes], Any]:
    try:
        import orjson
    except ImportError:
        return _value_or_text
    version = re.match(r"(\d+)\.(\d+)\.(\d+)", orjson.__version__)
    if version is None or tuple(map(int, version.groups())) < _ORJSON_VERSION_MIN:
        return _value_or_text
    return _by_orjson(orjson.loads)


value_or_text = _choose()


def value_or_none(payload: bytes) -> Any:
    """The same of a payload that is empty where there is no value."""
    return value_or_text(payload) if payload else None


def encode(value: object, field: str) -> bytes:
    """A value as compact JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"{field} cannot be written as JSON: {error}", status=_abi.BIRD_ERR_PAYLOAD, field=field
        ) from error
