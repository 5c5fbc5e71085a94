"""The table of planted faults keeps up with the core."""

from __future__ import annotations

from collections import Counter

import pytest
from planted_faults import FAULTS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_a_planted_fault_has_its_place(fault: Fault) -> None:
    assert fault.problem() == ""


def test_names_are_given_once() -> None:
    assert [name for name, count in Counter(fault.id for fault in FAULTS).items() if count > 1] == []
