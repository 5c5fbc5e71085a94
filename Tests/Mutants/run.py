"""Plants the faults of planted_faults.py in the core, one at a time, and asks the simulation whether it finds them.

Arguments name the faults to plant; none: all. The status is 1 if one is not found.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from planted_faults import CORE, FAULTS, ROOT, Fault

HERE = Path(__file__).resolve().parent
PLACE = ROOT / "build/mutants"
TESTS = ROOT / "Tests/BirdRealtimeCoreTests"
# The core without what does input and output.
PURE = [
    "Session",
    "WebSocket",
    "Wire",
    "Fault.swift",
    "EdgeText.swift",
    "ExactText.swift",
    "FewOrMany.swift",
    "OutsideText.swift",
    "Rare.swift",
    "Network/Suspension.swift",
    "Runtime/Authorizer.swift",
    "Runtime/HTTPAnswer.swift",
]
# The simulation, without the test that runs it, and what it shares with other tests.
SIMULATION = [
    *sorted((TESTS / "Simulation").glob("*/*.swift")),
    TESTS / "Session/SessionDriver.swift",
    TESTS / "Encryption/Vault.swift",
    HERE / "main.swift",
]
# Debug builds compile what has changed and nothing else; the simulation needs the optimiser all the same.
BUILD = ["swift", "build", "--quiet", "--package-path", str(PLACE), "-Xswiftc", "-O"]
PROGRAM = PLACE / ".build/debug/Simulation"
BUILD_S_MAX = 900
# Without a fault it takes seconds.
RUN_S_MAX = 300


def copy(source: Path, target: Path) -> None:
    """Leaves alone what is the same already: nothing is compiled again for it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or source.read_bytes() != target.read_bytes():
        shutil.copyfile(source, target)


def prepare() -> None:
    """Makes the package of the core and the simulation as they are now."""
    files = {
        PLACE / "Package.swift": HERE / "Package.swift",
        **{PLACE / "include" / path.name: path for path in (ROOT / "include").iterdir()},
        **{PLACE / "Sources/CSodium" / path.name: path for path in (ROOT / "Sources/CSodium").iterdir()},
        **{PLACE / "Sources/Simulation" / path.name: path for path in SIMULATION},
    }
    for name in PURE:
        path = CORE / name
        for source in sorted(path.glob("*.swift")) if path.is_dir() else [path]:
            files[mutable(source.relative_to(CORE))] = source
    for target, source in files.items():
        copy(source, target)
    for path in (PLACE / "Sources").rglob("*.swift"):
        if path not in files:
            path.unlink()


def mutable(name: str | Path) -> Path:
    return PLACE / "Sources/BirdRealtimeCore" / name


def build() -> str:
    """What the compiler has to say against it, or nothing."""
    done = subprocess.run(BUILD, capture_output=True, text=True, check=False, timeout=BUILD_S_MAX)
    return done.stdout + done.stderr if done.returncode else ""


def simulate() -> str:
    """What is found, or nothing."""
    try:
        done = subprocess.run([PROGRAM], capture_output=True, text=True, check=False, timeout=RUN_S_MAX)
    except subprocess.TimeoutExpired:
        return f"hung: no end after {RUN_S_MAX} s"
    if done.returncode < 0:
        return f"crashed: {signal.Signals(-done.returncode).name}"
    return done.stdout.strip() or "no reason" if done.returncode else ""


def plant(fault: Fault) -> str:
    """What the simulation finds in the core with this fault, or nothing."""
    path = mutable(fault.file)
    original = path.read_text()
    path.write_text(fault.planted(original))
    try:
        if problem := build():
            sys.exit(f"mutants: {fault.id} does not compile\n{problem}")
        return simulate()
    finally:
        path.write_text(original)


def chosen(names: list[str]) -> list[Fault]:
    unknown = set(names) - {fault.id for fault in FAULTS}
    if unknown:
        sys.exit(
            f"mutants: no fault is called {', '.join(sorted(unknown))}; {HERE.name}/planted_faults.py has the names"
        )
    return [fault for fault in FAULTS if not names or fault.id in names]


def main() -> int:
    faults = chosen(sys.argv[1:])
    for fault in faults:
        if problem := fault.problem():
            sys.exit(f"mutants: {problem}")
    began = time.monotonic()
    print("mutants: the core as it is", flush=True)
    prepare()
    if problem := build() or simulate():
        sys.exit(f"mutants: it does not pass without a planted fault\n{problem}")
    survivors = 0
    for fault in faults:
        planted_at = time.monotonic()
        found = plant(fault)
        survivors += not found
        print(f"{fault.id}: {found or 'NOT FOUND: ' + fault.what} ({time.monotonic() - planted_at:.1f} s)", flush=True)
    took_s = time.monotonic() - began
    print(f"mutants: {len(faults)} faults planted, {len(faults) - survivors} found, {survivors} not; {took_s:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
