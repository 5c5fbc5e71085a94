"""docs/field-cases.md has every id once, and names tests that exist."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from named_tests import CASE, exists
from paths import ROOT

TEXT = (ROOT / "docs/field-cases.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if re.match(r"\| [A-Z]{3,4}-\d\d ", line)]
CASES = 134


def test_every_id_is_there_once() -> None:
    ids = [row[0] for row in ROWS]
    assert len(ids) == len(set(ids)) == CASES
    for before, after in pairwise(ids):
        (area, number), (next_area, next_number) = before.split("-"), after.split("-")
        assert area != next_area or number < next_number, f"{after} after {before}"


def test_every_row_says_what_happens_and_names_a_test() -> None:
    for row in ROWS:
        assert len(row) == 4, row
        assert all(row), row
        assert row[3] == ", ".join(f"`{name}`" for name in CASE.findall(row[3])), row


@pytest.mark.parametrize("name", sorted(set(CASE.findall(TEXT))))
def test_exists(name: str) -> None:
    assert exists(name)
