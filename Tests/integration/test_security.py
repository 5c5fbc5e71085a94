"""docs/security.md names tests that exist, and bounds that the sources have."""

from __future__ import annotations

import math
import re

import pytest
from named_tests import CASE, exists
from paths import ROOT

TEXT = (ROOT / "docs/security.md").read_text()
SOURCES = ROOT / "Sources/BirdRealtimeCore"
# The rows of the table that name a constant: its file, its name and the number that the row says.
ROWS = re.findall(r"^\| `(\w+)\.(\w+)`[^|]*\|[^|]*\|[^|]*?(\d[\d ]*)[^|]*\|", TEXT, re.MULTILINE)
# Types that are in a file of another name.
FILES = {
    "ChunkShelf": "ChunkPool",
    "InboundMessage": "SessionTypes",
    "Session": "SessionEncryption",
    "TLSSessionTable": "TLSSessions",
}
WORDS = {
    "at most 64 headers, names of 256 bytes and values of 8 KiB": ("Runtime/HTTPHeaders", "valueBytesMax = 8_192"),
    "at most 2048 characters": ("Runtime/HTTPEndpoint", "charactersMax = 2_048"),
}


@pytest.mark.parametrize("name", sorted(set(CASE.findall(TEXT))))
def test_exists(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize(("kind", "name", "number"), ROWS)
def test_bound(kind: str, name: str, number: str) -> None:
    files = list(SOURCES.rglob(f"{FILES.get(kind, kind)}.swift"))
    assert len(files) == 1, files
    found = re.findall(rf"\b{name}\b[^=\n{{]*[={{]\s*((?:\d[\d_]*(?: \* )?)+)", files[0].read_text())
    values = [product(term) for term in found]
    if not found:  # decided by the event
        values = [product(term) for term in re.findall(r"\d[\d_]+", files[0].read_text())]
    assert int(number.replace(" ", "")) in values, values


def product(term: str) -> int:
    return math.prod(int(factor.replace("_", "")) for factor in term.split(" * "))


def test_table_has_rows() -> None:
    assert len(ROWS) > 30


@pytest.mark.parametrize("words", WORDS)
def test_words(words: str) -> None:
    file, code = WORDS[words]
    assert words in re.sub(r"\s+", " ", TEXT)
    assert code in (SOURCES / f"{file}.swift").read_text()
