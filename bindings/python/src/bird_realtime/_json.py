"""JSON as the wire means it: RFC 8259, without the NaN and Infinity that Python's json accepts."""

from __future__ import annotations

import json
from typing import Any

from . import _abi
from .errors import InvalidArgument


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).decode


def parse(text: str) -> Any:
    """The value of a JSON text. ValueError: it is none, or is nested deeper than Python can follow."""
    try:
        return _decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode(value: object, field: str) -> bytes:
    """A value as compact JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"{field} cannot be written as JSON: {error}", status=_abi.BIRD_ERR_PAYLOAD, field=field
        ) from error
