"""Where things are: everything that the tests of this directory run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/birdrealtime.h"
PROGRAMS = Path(os.environ.get("BIRDREALTIME_PROGRAMS", ROOT / "build/c"))
HARNESS = PROGRAMS / "harness"
# Where the programs in Swift are built already, as `make test` says; else the tests build them.
BUILT_SWIFT_PROGRAMS = os.environ.get("BIRDREALTIME_SWIFT_PROGRAMS")
SWIFT_PROGRAMS = Path(BUILT_SWIFT_PROGRAMS or ROOT / ".build/debug")
CLIENT_SCRIPT = PROGRAMS / "client_script"
# What runs the client programs in Python.
PYTHON = os.environ.get("BIRDREALTIME_PYTHON", sys.executable)
PYTHON_CLIENT = ROOT / "Tests/integration/python_client.py"
PYTHON_SOURCES = ROOT / "bindings/python/src"
