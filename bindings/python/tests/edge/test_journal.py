from __future__ import annotations

from bird_realtime.edge.journal import LIMIT_CHARS, LIMIT_ENTRIES, Journal


def test_it_is_bounded_in_entries() -> None:
    journal = Journal()
    for number in range(LIMIT_ENTRIES + 1):
        journal.add("received", text=str(number))
    assert len(journal.entries()) == LIMIT_ENTRIES
    assert journal.entries()[0].text == "1"
    assert journal.version == LIMIT_ENTRIES + 1


def test_it_is_bounded_in_text() -> None:
    journal = Journal()
    half = "x" * (LIMIT_CHARS // 2)
    for _ in range(3):
        journal.add("received", text=half)
    assert len(journal.entries()) == 2


def test_waiting_returns_at_once_when_something_is_new() -> None:
    journal = Journal()
    version = journal.version
    assert not journal.wait_beyond(version, 0.0)
    journal.add("opened")
    assert journal.wait_beyond(version, 0.0)
