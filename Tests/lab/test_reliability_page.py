"""docs/reliability.md has the cases that the lab has."""

from __future__ import annotations

import results
from case import all_cases


def test_each_case_has_its_row_and_each_row_its_case() -> None:
    documented = [(name, told) for name, _, told in results.documented()]
    assert documented == [(case.name, results.told_cell(case)) for case in all_cases().values()]
