from __future__ import annotations

import pytest

from bird_realtime import LibraryError, _abi, _records

from .batches import BatchMaker


@pytest.mark.parametrize("extra", [0, 8, 24])
def test_records_are_walked_by_stride(extra: int) -> None:
    batch = BatchMaker(extra)
    for number in range(5):
        batch.event(number, f"event-{number}", {"n": number}, event_id=number + 10)
    records = list(batch.decoded())
    assert [record[1] for record in records] == [0, 1, 2, 3, 4]
    assert [record[8] for record in records] == [10, 11, 12, 13, 14]
    assert all(len(record) == 12 for record in records)


def test_an_empty_batch() -> None:
    assert list(_records.decode(0, 0, BatchMaker().stride)) == []


def test_records_of_an_older_library_are_refused() -> None:
    with pytest.raises(LibraryError, match="96 bytes, but this package needs 104"):
        _records.decode(0, 1, 96)


def test_fields() -> None:
    batch = BatchMaker()
    detail = _abi.FailureDetail()
    batch.add(_abi.BIRD_RECORD_COMPLETION, tag=1, channel="abc", event="de", data=b"f", operation=99, detail=detail)
    (record,) = batch.decoded()
    kind, tag, name, event, data, data_length, name_length, event_length, event_id, data_kind, operation, address = (
        record
    )
    assert (kind, tag, name_length, event_length, data_length) == (_abi.BIRD_RECORD_COMPLETION, 1, 3, 2, 1)
    assert (event_id, data_kind, operation) == (0, _abi.BIRD_DATA_STRING, 99)
    assert all((name, event, data, address))
