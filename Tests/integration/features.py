"""The table of docs/features.md: which feature each face has, and the test that shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paths import ROOT

DOCUMENT = ROOT / "docs/features.md"
OURS = ("C", "Swift", "Python")
OTHERS = ("Swift 0.1.1", "browser 0.4.0", "pusher-js 8.6.0")
HEADINGS = ("feature", *OURS, *OTHERS, "test")


@dataclass(frozen=True)
class Row:
    feature: str
    cells: dict[str, str]
    test: str

    @property
    def faces(self) -> list[str]:
        """Those that have it: a cell that begins with "no" says that one has not."""
        return [face for face in OURS if not self.cells[face].startswith("no")]


def table() -> list[Row]:
    rows = []
    for line in DOCUMENT.read_text().splitlines():
        if not line.startswith("| ") or line.startswith(("| ---", "| feature ")):
            continue
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        assert len(cells) == len(HEADINGS), f"{line!r} has {len(cells)} cells, not {len(HEADINGS)}"
        named = dict(zip(HEADINGS, cells, strict=True))
        test = re.fullmatch(r"`(test_\w+)`", named["test"])
        assert test, f"{line!r} names no test"
        rows.append(Row(named["feature"], named, test[1]))
    return rows
