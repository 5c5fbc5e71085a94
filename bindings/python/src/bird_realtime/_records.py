"""Decoding of a drained batch: of each record the few fields that an event needs, of the others all of them."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterator
from functools import lru_cache
from operator import length_hint
from typing import Any, NamedTuple

from . import _abi
from .errors import LibraryError

#: The memory of the process: a slice of it is a copy of what lies there, for a third of the time of ctypes.string_at.
MEMORY: Any = (ctypes.c_char * sys.maxsize).from_address(0)

# Both in the order of struct bird_record; x passes over the others.
_EVENT_FIELDS = (
    "4x"  # struct_size
    "I"  # kind
    "8x8x8x"  # client, client_tag, channel
    "Q"  # channel_tag
    "8x8x"  # channel_name, event
    "P"  # data
    "N"  # data_length
    "4x4x"  # channel_name_length, event_length
    "I"  # event_id
    "4x8x8x"  # data_kind, operation_tag, detail
    "8x4x4x"  # sender, sender_length, reserved
)
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
    "P"  # sender
    "I"  # sender_length
    "4x"  # reserved
)
_all_fields = struct.Struct(f"@{_FIELDS}")


@lru_cache(maxsize=4)
def _layout(stride: int) -> struct.Struct:
    known = ctypes.sizeof(_abi.Record)
    if stride < known:
        raise LibraryError(f"records of the loaded library have {stride} bytes, but this package needs {known}")
    return struct.Struct(f"@{_EVENT_FIELDS}{stride - known}x")


class Fields(NamedTuple):
    """All of a record that delivery needs. Pointers are addresses and stay valid until the batch is released."""

    kind: int
    channel_tag: int
    channel_name: int
    event: int
    data: int
    data_length: int
    channel_name_length: int
    event_length: int
    event_id: int
    data_kind: int
    operation_tag: int
    detail: int
    sender: int
    sender_length: int

    @property
    def channel_text(self) -> str:
        return _copy(self.channel_name, self.channel_name_length).decode()

    @property
    def event_text(self) -> str:
        return _copy(self.event, self.event_length).decode()

    @property
    def sender_text(self) -> str | None:
        """The member id of who sent a client event, None if the edge does not say."""
        return _copy(self.sender, self.sender_length).decode() if self.sender_length else None

    @property
    def payload(self) -> bytes:
        return _copy(self.data, self.data_length)


class Records:
    """The records of a batch, in order and once."""

    def __init__(self, address: int, count: int, stride: int) -> None:
        self._stride = stride
        self._bytes = _copy(address, count * stride)
        self._count = count
        #: (kind, channel_tag, data, data_length, event_id) of each record
        self.brief: Iterator[tuple[int, int, int, int, int]] = _layout(stride).iter_unpack(self._bytes)

    def current(self) -> Fields:
        """The record that ``brief`` gave last."""
        position = self._count - length_hint(self.brief) - 1
        return Fields._make(_all_fields.unpack_from(self._bytes, position * self._stride))


def _copy(address: int, length: int) -> bytes:
    copied: bytes = MEMORY[address : address + length]
    return copied
