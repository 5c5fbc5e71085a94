"""Batches as the library hands them over, made by hand: arrays of bird_record with their strings and details."""

from __future__ import annotations

import ctypes
import json
import weakref
from typing import Any

from bird_realtime import _abi, _records


class Roster:
    """What a bird_members points to: for each member its id as C has it, the length of that, and its info as JSON."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.rows = [
            (
                ctypes.create_string_buffer(member_id.encode()),
                len(member_id.encode()),
                b"" if info is None else json.dumps(info).encode(),
            )
            for member_id, info in members.items()
        ]
        ROSTERS[id(self)] = self


ROSTERS: weakref.WeakValueDictionary[int, Roster] = weakref.WeakValueDictionary()


class BatchMaker:
    """Collects records and keeps everything they point to alive. Extra bytes stand for fields of a later version."""

    def __init__(self, extra: int = 0) -> None:
        self.stride = ctypes.sizeof(_abi.Record) + extra
        self._records: list[_abi.Record] = []
        self._kept: list[object] = []

    def add(
        self,
        kind: int,
        *,
        tag: int = 0,
        channel: str = "",
        event: str = "",
        event_id: int = 0,
        data: bytes | None = None,
        data_kind: int = _abi.BIRD_DATA_STRING,
        operation: int = 0,
        detail: ctypes.Structure | None = None,
        sender: str = "",
    ) -> None:
        record = _abi.Record(struct_size=self.stride, kind=kind, channel_tag=tag, operation_tag=operation)
        record.channel_name, record.channel_name_length = self._string(channel.encode())
        record.event, record.event_length = self._string(event.encode())
        record.event_id = event_id
        record.sender, record.sender_length = self._string(sender.encode())
        record.data_kind = _abi.BIRD_DATA_NONE
        if data is not None:
            record.data, record.data_length = self._string(data)
            record.data_kind = data_kind
        if detail is not None:
            self._kept.append(detail)
            record.detail = ctypes.addressof(detail)
        self._records.append(record)

    def event(self, tag: int, name: str, value: Any = None, *, event_id: int = 0) -> None:
        self.add(_abi.BIRD_RECORD_EVENT, tag=tag, event=name, event_id=event_id, data=json.dumps(value).encode())

    def subscribed(
        self,
        tag: int,
        payload: Any,
        my_id: str = "",
        *,
        members: dict[str, Any] | None = None,
        is_resubscribe: bool = False,
        interrupted_ms: int = 0,
    ) -> None:
        detail = _abi.SubscriptionDetail(
            is_resubscribe=is_resubscribe,
            interrupted_ms=interrupted_ms,
            my_id=my_id.encode(),
            my_id_length=len(my_id.encode()),
        )
        if members is not None:
            roster = Roster(members)
            self._kept.append(roster)
            detail.members = id(roster)
        self.add(_abi.BIRD_RECORD_SUBSCRIBED, tag=tag, data=json.dumps(payload).encode(), detail=detail)

    def member(self, kind: int, tag: int, member_id: str, info: Any = None) -> None:
        data = None if info is None else json.dumps(info).encode()
        detail = _abi.MemberDetail(id=member_id.encode(), id_length=len(member_id.encode()))
        self.add(kind, tag=tag, data=data, data_kind=_abi.BIRD_DATA_VALUE, detail=detail)

    def state(self, previous: int, current: int, **fields: Any) -> None:
        detail = _abi.StateChangeDetail(previous=previous, current=current, delay_ms=-1)
        for name, value in fields.items():
            setattr(detail, name, value)
        self.add(_abi.BIRD_RECORD_STATE, detail=detail)

    def array(self) -> tuple[int, int]:
        """(address, count)."""
        buffer = ctypes.create_string_buffer(len(self._records) * self.stride)
        self._kept.append(buffer)
        for index, record in enumerate(self._records):
            ctypes.memmove(ctypes.addressof(buffer) + index * self.stride, ctypes.byref(record), ctypes.sizeof(record))
        return ctypes.addressof(buffer), len(self._records)

    def decoded(self) -> _records.Records:
        address, count = self.array()
        return _records.Records(address, count, self.stride)

    def _string(self, text: bytes) -> tuple[int, int]:
        buffer = ctypes.create_string_buffer(text)
        self._kept.append(buffer)
        return ctypes.addressof(buffer), len(text)
