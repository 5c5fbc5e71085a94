"""How the library reads JSON and UTF-8, against Python's own readers and Foundation's.

There are hard cases by name, and many documents that are made up, damaged and cut off.

Run by itself it tries COUNT documents from SEED on; test_conformance.py tries a few.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from json_cases import ACCEPTED, OURS, REFUSED, UTF8
from paths import ROOT, SWIFT_PROGRAMS

PROGRAM = SWIFT_PROGRAMS / "conformance"
DEPTH_MAX = 512
# Nested documents are read and written by recursion here.
sys.setrecursionlimit(8 * DEPTH_MAX)

#: Where readers that a program may be used to differ from this one, which takes what RFC 8259 calls JSON and nothing
#: else. `expected` takes the ways of Python's json out of the comparison, `foundation_may` those of Foundation's
#: JSONSerialization.
DIFFERENCES = {
    "Python's json takes NaN, Infinity and -Infinity": b"[NaN]",
    "Python's json takes an escaped half of a surrogate pair": b'["\\ud800"]',
    "Python's json takes more than 512 containers inside each other": b"[" * 513 + b"]" * 513,
    "Python's json, given bytes, takes a byte order mark, UTF-16 and UTF-32": b"\xef\xbb\xbf{}",
    "Foundation takes a byte order mark, UTF-16 and UTF-32": b"\xef\xbb\xbf{}",
    "Foundation takes a comma behind the last element or member": b"[1,]",
    "Foundation refuses numbers beyond a Double": b"[1e400]",
    "Foundation leaves U+FEFF out of strings": '["\ufeff"]'.encode(),
}


class Number(str):
    """The digits of a number: neither side makes anything else of them."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """An object with all that it says: a value counts for the form of a document although a later one replaces it."""


def refuse(constant: str) -> Any:
    raise ValueError(constant)


decode = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=refuse, object_pairs_hook=Members).decode


def rendering(value: Any, depth: int = 0) -> str:
    """A value in the one spelling that the program of Tests/Conformance gives it."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        # Half a pair that was escaped cannot be written as UTF-8.
        value.encode()
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if depth == DEPTH_MAX:
        raise ValueError("nested too deeply")
    if isinstance(value, Members):
        members = {name: f"{rendering(name)}:{rendering(member, depth + 1)}" for name, member in value}
        return "{" + ",".join(members[name] for name in sorted(members, key=str.encode)) + "}"
    return "[" + ",".join(rendering(element, depth + 1) for element in value) + "]"


def expected(document: bytes) -> bytes | None:
    """The value as Python reads it, without its leniencies; None: no JSON."""
    try:
        return rendering(decode(document.decode())).encode()
    except (ValueError, RecursionError):
        return None


def has_number_beyond_double(value: Any) -> bool:
    if isinstance(value, Number):
        return math.isinf(float(value))
    if isinstance(value, Members):
        return any(has_number_beyond_double(member) for _, member in value)
    return isinstance(value, list) and any(map(has_number_beyond_double, value))


def foundation_may(document: bytes, is_json: bool) -> set[str]:
    """How Foundation may read a document (see `Reading`)."""
    if not is_json:
        starts_with_mark = document.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
        if starts_with_mark or b"\0" in document or re.search(rb",[ \t\r\n]*[\]}]", document):
            return {"refused", "accepted"}
        return {"refused"}
    text = document.decode()
    ways = {"same"}
    if has_number_beyond_double(decode(text)):
        # It does not look at a number that a later member replaces.
        ways.add("refused")
    if "\ufeff" in text or "\\ufeff" in text.lower():
        ways.add("other")
    return ways


@dataclass(frozen=True)
class Reading:
    """What the program says of a document."""

    is_utf8: bool
    is_value: bool
    #: "same", "other", "refused", or "accepted" though the library refuses it
    foundation: str
    value: bytes | None


class Reader:
    """The readers of the library: those of the engine in a program, and the one of the C interface."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ.get("BIRDREALTIME_LIBRARY", str(ROOT / "build/lib/libbirdrealtime.so")))
        self._library.bird_data_is_json.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    def read(self, documents: list[bytes]) -> list[Reading]:
        packed = b"".join(len(document).to_bytes(4, "big") + document for document in documents)
        done = subprocess.run([PROGRAM], input=packed, capture_output=True, check=True)
        lines = done.stdout.split(b"\n")[:-1]
        assert len(lines) == len(documents)
        return [self._reading(line) for line in lines]

    @staticmethod
    def _reading(line: bytes) -> Reading:
        is_utf8, is_value, foundation, value = line.split(b"\t")
        return Reading(is_utf8 == b"1", is_value == b"1", foundation.decode(), None if value == b"-" else value)

    def is_json(self, document: bytes) -> bool:
        return bool(self._library.bird_data_is_json(document, len(document)))


def is_utf8(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return False
    return True


class Maker:
    """Documents with a liking for what readers disagree about; the same for the same seed."""

    NUMBERS = (
        "0", "-0", "1", "-1", "0.0", "-0.0", "1e1", "1E+1", "1e-1", "0e0", "1.5", "9007199254740993", "1e400",
        "-1e-400", "18446744073709551616", "0.1000000000000000055511151231257827021181583404541015625", "1" * 400,
    )  # fmt: skip
    NO_NUMBERS = (
        "01",
        "-",
        "+1",
        ".1",
        "1.",
        "1e",
        "1e+",
        "--1",
        "0x1",
        "1_0",
        "NaN",
        "Infinity",
        "-Infinity",
        "00",
        "1.e1",
    )
    ESCAPES = (
        '\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0000", "\\u00e9", "\\u20AC", "\\uFFFF",
        "\\u005C", "\\u0022", "\\ud83d\\ude00", "\\uDBFF\\uDFFF",
    )  # fmt: skip
    NO_ESCAPES = (
        "\\ud83d",
        "\\ude00",
        "\\ude00\\ud83d",
        "\\x41",
        "\\u12",
        "\\u00g0",
        "\\'",
        "\\U0041",
        "\\",
        "\t",
        "\n",
        "\0",
    )
    CHARACTERS = ("a", " ", "/", "'", "\x7f", "\x80", "é", "e\u0301", "߿", "ࠀ", "\u2028", "\ufeff", "\ufffd", "\uffff",
                  "😀", "\U0010ffff", "{", "}", "[", "]", ",", ":")  # fmt: skip
    BLANKS = ("", "", "", " ", "\n", "\r\n\t ")
    NO_BLANKS = ("\x0b", "\x0c", "\xa0", "\ufeff", "\u2003", "/**/", "\0", "\x85")
    BYTES = tuple(data for data, _ in UTF8.values() if len(data) < 8)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  the same documents in each run

    def document(self) -> bytes:
        draw = self._random.random()
        text = self._value(0).encode()
        if draw < 0.4:
            return text
        if draw < 0.5:
            return text[: self._random.randrange(len(text) + 1)]
        for _ in range(self._random.choice((1, 1, 1, 2, 5))):
            text = self._damaged(text)
        return text

    def _value(self, depth: int) -> str:
        draw = self._random
        kind = draw.randrange(8 if depth < 6 else 4)
        if kind == 0:
            return draw.choice(self.NUMBERS)
        if kind == 1:
            digits = draw.getrandbits(draw.randrange(1, 140))
            return f"{draw.choice(('-', ''))}{digits}{draw.choice(('', '.5', 'e9', 'E-17'))}"
        if kind == 2:
            return draw.choice(("null", "true", "false"))
        if kind == 3:
            return self._string()
        if kind == 4 and depth == 0 and draw.random() < 0.1:
            nesting = draw.choice((3, 100, 511, 512, 513))
            return "[" * nesting + "]" * nesting
        parts = [self._blank() + self._value(depth + 1) + self._blank() for _ in range(draw.randrange(5))]
        if kind < 6:
            return "[" + ",".join(parts) + "]"
        names = [self._blank() + draw.choice(('"a"', '"\\u0061"', '"b"', '""', self._string())) for _ in parts]
        return "{" + ",".join(f"{name}{self._blank()}:{part}" for name, part in zip(names, parts, strict=True)) + "}"

    def _string(self) -> str:
        draw = self._random
        plain = draw.choice(("", "", "x" * draw.randrange(70)))
        parts = [
            draw.choice(self.ESCAPES if draw.random() < 0.4 else self.CHARACTERS) for _ in range(draw.randrange(12))
        ]
        return '"' + plain + "".join(parts) + draw.choice(("", plain)) + '"'

    def _blank(self) -> str:
        return self._random.choice(self.BLANKS)

    def _damaged(self, text: bytes) -> bytes:
        draw = self._random
        at = draw.randrange(len(text) + 1)
        kind = draw.randrange(5)
        if kind == 0:
            piece = draw.choice(self.BYTES)
        elif kind == 1:
            piece = draw.choice(self.NO_NUMBERS + self.NO_ESCAPES + self.NO_BLANKS).encode()
        elif kind == 2:
            piece = bytes([draw.randrange(256)])
        elif kind == 3:
            piece = draw.choice(
                (b'"', b"\\", b",", b":", b"{", b"}", b"[", b"]", b"0", b"-", b".", b"e", b"null", b"\xef\xbb\xbf")
            )
        else:
            piece = b""
        return text[:at] + piece + text[at + draw.randrange(2) :]


def cut_off() -> Iterator[bytes]:
    """A document with everything in it, ended at each byte."""
    whole = ' {"a" : [1.5e+3, "x\\ud83d\\ude00é😀\\n", true, null, {"b":{}}, []], "a":-0, "\\u0061": "" }\n'.encode()
    return (whole[:count] for count in range(len(whole) + 1))


def table() -> Iterator[tuple[str, bytes, bool]]:
    """Name, document, and whether the library takes it."""
    for name, document in ACCEPTED.items():
        yield name, document, True
    for name, document in REFUSED.items():
        yield name, document, False
    for name, (document, is_accepted) in OURS.items():
        yield name, document, is_accepted
    for name, (data, is_text) in UTF8.items():
        # Control characters need an escape, in whatever encoding.
        yield f"UTF-8, {name}", b'["' + data + b'"]', is_text and data[0] >= 0x20
        yield f"UTF-8 behind a long text, {name}", b'["' + b"a" * 61 + data + b'"]', is_text and data[0] >= 0x20


def problems(document: bytes, reading: Reading, reader: Reader) -> list[str]:
    """How the readers differ in what they must not."""
    value = expected(document)
    found = []
    if reading.is_utf8 != is_utf8(document):
        found.append(f"the library says that it is {'' if reading.is_utf8 else 'not '}UTF-8")
    if reading.value != value:
        found.append(f"the library reads {reading.value!r}, Python {value!r}")
    if not reading.is_value == reader.is_json(document) == (reading.value is not None):
        found.append("the readers of the library differ")
    if reading.foundation not in foundation_may(document, value is not None):
        found.append(f"Foundation's reading is {reading.foundation!r}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="conformance", usage="make conformance [COUNT=20000] [SEED=1]")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not Path(PROGRAM).exists():
        sys.exit(f"conformance: {PROGRAM} is missing: run make conformance")
    began = time.monotonic()
    reader = Reader()
    failures = 0
    verdicts: Counter[str] = Counter()
    cases = list(table())
    for (name, document, is_accepted), reading in zip(
        cases, reader.read([document for _, document, _ in cases]), strict=True
    ):
        found = problems(document, reading, reader)
        if (reading.value is not None) != is_accepted:
            found.append(f"the library {'refuses' if is_accepted else 'takes'} it")
        for problem in found:
            failures += 1
            print(f"conformance: {name}: {problem}")
    maker = Maker(options.seed)
    accepted = 0
    for start in range(0, options.count, 5_000):
        documents = [maker.document() for _ in range(min(5_000, options.count - start))]
        for document, reading in zip(documents, reader.read(documents), strict=True):
            accepted += reading.value is not None
            verdicts[reading.foundation] += 1
            for problem in problems(document, reading, reader):
                failures += 1
                print(f"conformance: {document!r}: {problem}")
    print(
        f"conformance: {len(cases)} cases by name and {options.count} documents, {accepted} of them JSON; "
        f"of Foundation's readings {dict(verdicts)}; {failures} failures; {time.monotonic() - began:.0f} s"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
