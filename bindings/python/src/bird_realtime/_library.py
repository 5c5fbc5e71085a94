"""Finds and loads libbirdrealtime at its first use."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from . import _abi
from .errors import LibraryError

ENVIRONMENT = "BIRDREALTIME_LIBRARY"

# e_machine of the ELF header, and what Python's platform module calls the same machine
_MACHINES: dict[int, str] = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_ELF_MACHINE = struct.Struct("=18xH")

_lock = threading.RLock()  # reentrant: a signal handler may create a client, too
_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """The library, loaded, checked and declared. LibraryError: it cannot be."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _load()
        return _loaded


def _load() -> ctypes.CDLL:
    failures: list[tuple[str, str]] = []
    for origin, path in _candidates():
        if "/" in path and not os.path.isfile(path):
            failures.append((f"{path} ({origin})", "no such file"))
            continue
        try:
            candidate = ctypes.CDLL(path)
        except OSError as error:
            failures.append((f"{path} ({origin})", explain(path, str(error))))
            continue
        problem = _unsuitable(candidate)
        if problem is None:
            return candidate
        failures.append((f"{path} ({origin})", problem))
    raise LibraryError(report(failures))


def _candidates() -> Iterator[tuple[str, str]]:
    """Where the library may be, best first: (how it was found, path or name for the loader)."""
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        # An explicit choice is not overruled: falling back to another copy would hide that it does not work.
        yield f"from {ENVIRONMENT}", os.path.abspath(chosen)
        return
    package = Path(__file__).resolve().parent
    yield "beside the package", str(package / _abi.SONAME)
    # In the project's own source tree the package runs without being installed, next to the header it was written for.
    # (A copy of the package may lie too close to the root to have such a tree around it.)
    source = package.parents[3] if len(package.parents) > 3 else None
    if source is not None and (source / "include" / "birdrealtime.h").is_file():
        yield "built in the source tree", str(source / "build" / "lib" / _abi.SONAME)
    yield "through the system's loader", _abi.SONAME


def explain(path: str, reason: str) -> str:
    """Why the loader refused a file, in words that say what to do."""
    built_for = _machine(path)
    if built_for is not None and built_for != platform.machine():
        return f"built for {built_for}, but this machine is {platform.machine()}"
    if "ELF" in reason or "file too short" in reason:
        return f"not a shared library for this process ({reason})"
    needed = re.search(r"version `(GLIBC\w*_[0-9.]+)' not found", reason)
    if needed:
        return f"needs {needed.group(1)}, but this system has {' '.join(platform.libc_ver()) or 'another C library'}"
    missing = re.match(r"(?:Error loading shared library )?([^\s:]+)(?=: (?:cannot open|No such file))", reason)
    if missing and os.path.basename(missing.group(1)) != os.path.basename(path):
        return f"it needs {missing.group(1)}, which is missing (`ldd {path}` lists what it needs)"
    if missing:
        return "not found"
    return reason


def _machine(path: str) -> str | None:
    """The machine an ELF file was built for; None if it is no ELF file or cannot be read."""
    try:
        with open(path, "rb") as file:
            header = file.read(_ELF_MACHINE.size)
    except OSError:
        return None
    if len(header) < _ELF_MACHINE.size or not header.startswith(b"\x7fELF"):
        return None
    (number,) = _ELF_MACHINE.unpack(header)
    return _MACHINES.get(number, f"machine {number}")


def _unsuitable(candidate: ctypes.CDLL) -> str | None:
    """Why a loaded library cannot be used; None if it can, and then its functions are declared."""
    try:
        version_number = candidate.bird_version_number
    except AttributeError:
        return "not libbirdrealtime: it has no function bird_version_number"
    version_number.restype = ctypes.c_int32
    version_number.argtypes = []
    problem = version_problem(version_number())
    if problem is not None:
        return problem
    try:
        _abi.declare(candidate)
    except AttributeError as error:
        return f"incomplete: {error}"
    return None


def version_problem(number: int) -> str | None:
    """Why a library of this version cannot serve this package. Before 1.0 each minor is an interface of its own."""
    major, minor, patch = number // 1_000_000, number // 1_000 % 1_000, number % 1_000
    wanted = (_abi.BIRD_VERSION_MAJOR, _abi.BIRD_VERSION_MINOR)
    if (major, minor) == wanted and number >= _abi.BIRD_VERSION_NUMBER:
        return None
    return (
        f"version {major}.{minor}.{patch}, but this package needs "
        f"{wanted[0]}.{wanted[1]}.{_abi.BIRD_VERSION_PATCH} or a later {wanted[0]}.{wanted[1]}"
    )


def report(failures: list[tuple[str, str]]) -> str:
    """The text of the LibraryError."""
    lines = ["libbirdrealtime could not be loaded. Tried:"]
    lines += [f"  {path}: {reason}" for path, reason in failures]
    name, version = platform.libc_ver()
    if name != "glibc":
        lines.append(
            "This Python does not run on glibc; the library supports Linux with glibc 2.34 or later, not musl."
        )
    else:
        lines.append(f"This is {platform.machine()} with glibc {version}; the library needs glibc 2.34 or later.")
    lines.append(f"Set {ENVIRONMENT} to the path of {_abi.SONAME}, or install it where the loader finds it.")
    return "\n".join(lines)
