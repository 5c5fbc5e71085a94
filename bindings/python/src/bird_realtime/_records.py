"""Decoding of a drained batch: an array of bird_record becomes tuples in one pass."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ctypes import sizeof, string_at
from functools import lru_cache

from . import _abi
from .errors import LibraryError

# The fields that delivery needs, in the order of struct bird_record; x passes over the others.
_FIELDS = (
    "4x"  # struct_size
    "I"  # kind
    "8x8x8x"  # client, client_tag, channel
    "Q"  # channel_tag
    "P"  # channel_name
    "P"  # event
    "P"  # data
    "N"  # data_length
    "I"  # channel_name_length
    "I"  # event_length
    "I"  # event_id
    "I"  # data_kind
    "Q"  # operation_tag
    "P"  # detail
)


@lru_cache(maxsize=4)
def _layout(stride: int) -> struct.Struct:
    known = sizeof(_abi.Record)
    if stride < known:
        raise LibraryError(f"records of the loaded library have {stride} bytes, but this package needs {known}")
    return struct.Struct(f"@{_FIELDS}{stride - known}x")


def decode(address: int, count: int, stride: int) -> Iterator[tuple[int, ...]]:
    """(kind, channel_tag, channel_name, event, data, data_length, channel_name_length, event_length, event_id,
    data_kind, operation_tag, detail) of each record; pointers are addresses and stay valid until the batch is
    released."""
    return _layout(stride).iter_unpack(string_at(address, count * stride))
