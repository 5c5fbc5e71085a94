"""The page of the documentation that holds the results of one full run."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection

from processes import RESULTS, ROOT

PAGE = ROOT / "docs/performance.md"
PICTURE = ROOT / "docs/performance.svg"
BEGIN = "<!-- results: written by Benchmarks/run.py --update-docs -->"
END = "<!-- end of the results -->"


def update(measures: Collection[str]) -> None:
    """Takes over what the last run wrote, which must have been a full one."""
    results = RESULTS / "results.json"
    content = json.loads(results.read_text()) if results.exists() else None
    if content is None or content["plan"]["is_quick"] or set(content["sections"]) != set(measures):
        sys.exit("bench: the last run was not a full one; make bench, without QUICK and ONLY, comes first")
    tables = (RESULTS / "results.md").read_text()
    page, replaced = re.subn(
        f"{re.escape(BEGIN)}.*{re.escape(END)}",
        lambda _: f"{BEGIN}\n\n{tables}\n{END}",
        PAGE.read_text(),
        flags=re.DOTALL,
    )
    if replaced != 1:
        sys.exit(f"bench: {PAGE.relative_to(ROOT)} has no place for results between {BEGIN!r} and {END!r}")
    PAGE.write_text(page)
    PICTURE.write_text((RESULTS / "results.svg").read_text())
