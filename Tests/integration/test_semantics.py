"""docs/semantics.md names tests that exist."""

from __future__ import annotations

import re

import pytest
from paths import ROOT

TEXT = (ROOT / "docs/semantics.md").read_text()
NAMED = sorted(set(re.findall(r"`(\w+\.py::\w+|\w+\.c::\w+|\w+Tests\.\w+)`", TEXT)))


def definition(name: str) -> tuple[str, str]:
    """A pattern for the test's file, and what must stand in it."""
    if "::" not in name:
        suite, function = name.split(".")
        return f"Tests/BirdRealtimeCoreTests/**/{suite}.swift", rf"\bfunc {function}\("
    file, function = name.split("::")
    if file.endswith(".c"):
        return f"Tests/CHarness/{file}", rf"_CASE\({function}\)"
    return f"Tests/integration/{file}", rf"^def {function}\("


@pytest.mark.parametrize("name", NAMED)
def test_exists(name: str) -> None:
    pattern, text = definition(name)
    files = list(ROOT.glob(pattern))
    assert files, f"no file {pattern}"
    assert any(re.search(text, file.read_text(), re.MULTILINE) for file in files), name


def test_every_rule_names_a_test() -> None:
    rules = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith(("| rule", "| ---"))]
    assert len(rules) > 40
    for rule in rules:
        assert re.search(r"`[\w.:]+`", rule.rsplit("|", 2)[1]), rule
