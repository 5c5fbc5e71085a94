"""docs/security.md names tests that exist, and bounds that the sources have."""

from __future__ import annotations

import re

import pytest
from named_tests import CASE, exists
from paths import ROOT

TEXT = (ROOT / "docs/security.md").read_text()
BOUNDS = {
    "16 KiB of headers": ("WebSocket/UpgradeResponse", "headerBytesMax = 16 * 1024"),
    "at most 64 headers, names of 256 bytes and values of 8 KiB": ("Runtime/HTTPHeaders", "valueBytesMax = 8_192"),
    "at most 2048 characters": ("Runtime/HTTPEndpoint", "charactersMax = 2_048"),
    "depth of JSON | 512": ("Wire/JSONReader", "depthMax = 512"),
    "256 KiB, depth 512": ("Runtime/HTTPAnswer", "bodyBytesMax = 262_144"),
    "8 of a client, 64 of the process": ("Runtime/HTTPPosts", "inFlightMax = 64"),
    "10 000 members": ("Runtime/Watchlist", "membersMax = 10_000"),
    "channel | 100 000 and 64 MiB": ("Session/KnownMembers", "membersMax = 100_000"),
    "16; 1024 names may wait, two threads ask": ("Runtime/Resolver", "addressesMax = 16"),
    "calls that wait for the reactor | 262 144": ("Runtime/Client", "commandsMax = 262_144"),
    "answers to pings that wait to be written | 64 KiB": ("Runtime/Outbound", "pongsBehindBytesMax = 65_536"),
    "names of events bound | 65 536": ("Runtime/InternedNames", "namesMax = 65_536"),
    "2048 bytes, one line; 1 MiB for sinks": ("Observability/LogWriter", "bufferBytesMax = 1_048_576"),
}


@pytest.mark.parametrize("name", sorted(set(CASE.findall(TEXT))))
def test_exists(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize("words", BOUNDS)
def test_bound(words: str) -> None:
    file, code = BOUNDS[words]
    assert words in re.sub(r"\s+", " ", TEXT)
    assert code in (ROOT / f"Sources/BirdRealtimeCore/{file}.swift").read_text()
