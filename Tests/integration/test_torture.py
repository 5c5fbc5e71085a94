"""`make torture` (Tests/Torture) calls every function of the header."""

from __future__ import annotations

import re
import subprocess

from paths import HEADER, ROOT


def test_every_function_of_the_header_is_called() -> None:
    command = [ROOT / "scripts/header-functions", HEADER]
    declared = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    sources = sorted((ROOT / "Tests/Torture").glob("calls_*.c"))
    text = "".join(source.read_text() for source in sources)
    called = re.findall(r"^(?:WAITING_|PLAIN_|ERROR_)?CALL\((\w+)", text, re.MULTILINE)
    assert sorted(called) == declared
