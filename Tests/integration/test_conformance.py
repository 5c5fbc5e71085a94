"""JSON and UTF-8 as the library reads them; see conformance.py, which tries many more documents."""

from __future__ import annotations

import pytest
from conformance import DIFFERENCES, Maker, Reader, cut_off, expected, problems, table

DOCUMENTS = 2_000


@pytest.fixture(scope="module")
def reader(swift_programs: None) -> Reader:
    return Reader()


def test_hard_cases_are_taken_and_refused_as_they_must_be(reader: Reader) -> None:
    cases = list(table())
    readings = reader.read([document for _, document, _ in cases])
    for (name, document, is_accepted), reading in zip(cases, readings, strict=True):
        assert (reading.value is not None) == is_accepted, name
        assert problems(document, reading, reader) == [], name


def test_a_document_that_is_cut_off_at_any_byte_is_none(reader: Reader) -> None:
    documents = list(cut_off())
    readings = reader.read(documents)
    # The last byte is white space.
    assert [reading.value is not None for reading in readings] == [False] * (len(documents) - 2) + [True, True]
    for document, reading in zip(documents, readings, strict=True):
        assert problems(document, reading, reader) == [], document


def test_readers_agree_about_documents_made_up_and_damaged(reader: Reader) -> None:
    maker = Maker(seed=8259)
    documents = [maker.document() for _ in range(DOCUMENTS)]
    readings = reader.read(documents)
    for document, reading in zip(documents, readings, strict=True):
        assert problems(document, reading, reader) == [], document
    # Neither of the answers is a rare one.
    accepted = sum(reading.value is not None for reading in readings)
    assert DOCUMENTS // 5 < accepted < DOCUMENTS * 4 // 5


def test_where_other_readers_differ_they_still_do(reader: Reader) -> None:
    """The list in docs/testing.md is no longer right when one of them has changed."""
    for (name, document), reading in zip(DIFFERENCES.items(), reader.read(list(DIFFERENCES.values())), strict=True):
        if name.startswith("Foundation"):
            assert reading.foundation != ("refused" if reading.value is None else "same"), name
        else:
            assert expected(document) is None, name
            assert reading.value is None, name
