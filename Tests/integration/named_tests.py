"""Whether a test that a document names exists."""

from __future__ import annotations

import re

from paths import ROOT

CASE = re.compile(r"`((?:\w+/)?\w+\.py::\w+|\w+\.c::\w+|check-library::\w+|\w+Tests\.\w+)`")


def _place(name: str) -> tuple[str, str]:
    """A pattern for the test's file, and what must stand in it."""
    if "::" not in name:
        suite, function = name.split(".")
        return "Tests/BirdRealtime*Tests/**/*.swift", rf"(?s)\bstruct {suite}\b.*\bfunc {function}\("
    file, function = name.split("::")
    if file == "check-library":
        return "scripts/check-library", rf'report\.line\("{function}"'
    if file.endswith(".c"):
        return f"Tests/CHarness/{file}", rf"_CASE\({function}\)|^CASE\({function}\)"
    if "/" in file:
        return f"bindings/python/tests/**/{file}", rf"^def {function}\("
    return f"Tests/integration/{file}", rf"^def {function}\("


def exists(name: str) -> bool:
    pattern, text = _place(name)
    return any(re.search(text, file.read_text(), re.MULTILINE) for file in ROOT.glob(pattern))
