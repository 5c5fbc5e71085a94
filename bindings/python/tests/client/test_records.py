from __future__ import annotations

import ctypes

import pytest

from bird_realtime import LibraryError, _abi
from bird_realtime._records import Records

from .batches import BatchMaker


@pytest.mark.parametrize("extra", [0, 8, 24])
def test_records_are_walked_by_stride(extra: int) -> None:
    batch = BatchMaker(extra)
    for number in range(5):
        batch.event(number, f"event-{number}", {"n": number}, event_id=number + 10)
    records = batch.decoded()
    assert [(tag, event_id) for _, tag, _, _, event_id in records.brief] == [(n, n + 10) for n in range(5)]
    records = batch.decoded()
    assert [records.current().event_text for _ in records.brief] == [f"event-{n}" for n in range(5)]


def test_an_empty_batch() -> None:
    assert list(Records(0, 0, BatchMaker().stride).brief) == []


def test_records_of_an_older_library_are_refused() -> None:
    with pytest.raises(LibraryError, match="96 bytes, but this package needs 120"):
        Records(0, 1, 96)


def test_fields() -> None:
    batch = BatchMaker()
    detail = _abi.FailureDetail()
    batch.add(_abi.BIRD_RECORD_COMPLETION, tag=1, channel="abc", event="de", data=b"f\0g", operation=99, detail=detail)
    records = batch.decoded()
    ((kind, tag, data, data_length, event_id),) = records.brief
    fields = records.current()
    assert (kind, tag, event_id) == (fields.kind, fields.channel_tag, fields.event_id)
    assert (data, data_length) == (fields.data, fields.data_length)
    assert (kind, tag, event_id, fields.data_kind) == (_abi.BIRD_RECORD_COMPLETION, 1, 0, _abi.BIRD_DATA_STRING)
    assert (fields.channel_text, fields.event_text, fields.payload) == ("abc", "de", b"f\0g")
    assert (fields.operation_tag, fields.detail) == (99, ctypes.addressof(detail))
