"""docs/semantics.md names tests that exist."""

from __future__ import annotations

import re

import pytest
from named_tests import CASE, exists
from paths import ROOT

TEXT = (ROOT / "docs/semantics.md").read_text()


@pytest.mark.parametrize("name", sorted(set(CASE.findall(TEXT))))
def test_exists(name: str) -> None:
    assert exists(name)


def test_every_rule_names_a_test() -> None:
    rules = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith(("| rule", "| ---"))]
    assert len(rules) > 40
    for rule in rules:
        assert re.search(r"`[\w.:]+`", rule.rsplit("|", 2)[1]), rule
