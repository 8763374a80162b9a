"""Each parser's own unit, nested in itself: the work to read it is linear in its length.

The grammar is that of `benchmarks/fuzzing/nesting.py`, which measures the time of 1 MB. Here calls
of functions are counted, which are the same on each machine.
"""

import contextlib
import gzip
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from benchmarks.fuzzing.nesting import ENDS, PARSERS, Parser, known_parsers
from crawlers.imports.streams import open_stream
from crawlers.text import wikitext
from crawlers.text.code import read_readme

SIZE = 3000  # characters
# Calls for twice the input are twice as many, and some more for a first call or a deeper tree.
MOST_TIMES = 2.5
FREE_CALLS = 3000
SLOW = {"latex"}  # its library's calls grow by 2.2 to 2.8; the reader has a time limit of its own


def num_calls(read: Callable[[str], object], text: str) -> int:
    """Return the number of calls of functions, those in C included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with contextlib.suppress(*ENDS):
            read(text)
    finally:
        sys.setprofile(None)
    return calls


def excess_calls(parser: Parser) -> Iterator[tuple[str, int, int]]:
    """Yield the inputs of a parser with more calls than linear work has, and both numbers."""
    longer = parser.inputs(2 * SIZE)
    for (_, short), (unit, long) in zip(parser.inputs(SIZE), longer, strict=True):
        with contextlib.suppress(*ENDS):
            parser.read(short)  # caches of expressions and codecs are filled
        once = num_calls(parser.read, short)
        twice = num_calls(parser.read, long)
        if twice > MOST_TIMES * once + FREE_CALLS:
            yield unit, once, twice


@pytest.mark.parametrize("name", [name for name in known_parsers() if name not in SLOW])
def test_work_is_linear_in_depth(name: str) -> None:
    assert list(excess_calls(PARSERS[name])) == []


# The most calls for a unit of a few characters: 1 MB has some hundred thousand of them.
SMALL_UNITS: list[tuple[str, Callable[[str], object], str, int]] = [
    ("wikitext", wikitext.to_text, "{{a}}", 40),
    ("Markdown", lambda text: read_readme("README.md", text.encode()), "\n\n[", 30),
    ("RST", lambda text: read_readme("README.rst", text.encode()), "\n\n", 19),
    ("RST", lambda text: read_readme("README.rst", text.encode()), "\n\n=:", 38),
    ("CSV", PARSERS["csv"].read, "a\n", 23),
]


def test_a_small_unit_takes_few_calls() -> None:
    for name, read, unit, most in SMALL_UNITS:
        once = num_calls(read, "text\n" + unit * SIZE)
        twice = num_calls(read, "text\n" + unit * 2 * SIZE)
        assert twice - once <= most * SIZE, (name, unit, (twice - once) / SIZE)


STORED = struct.pack("<BHH", 0, 65520, 65520 ^ 0xFFFF)  # the head of a stored block
MEMBERS = {
    "a wrong block": b"\x1f\x8b\x08\x00" + b"\0" * 6 + b"\xff",
    "first bytes": b"\x1f\x8b\x08",
    "a long stored block": b"\x1f\x8b\x08\x00\0\0\0\0\0\x03" + STORED,
    "an empty member": gzip.compress(b"", mtime=0),
    "an empty member with a wrong sum": gzip.compress(b"", mtime=0)[:-8] + b"\1" * 8,
    "a name without end": b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"a",
}


def test_a_file_of_false_members_is_read_to_its_end(tmp_path: Path) -> None:
    good = gzip.compress(b"good", mtime=0)
    path = tmp_path / "a.gz"
    for name, unit in MEMBERS.items():
        path.write_bytes(good + unit * (100 * SIZE // len(unit)) + good)
        faults: list[str] = []
        with open_stream(path, faults) as stream:
            start = stream.read(4)
            while stream.read(2**20):
                pass
        assert start == b"good", name
        assert len(faults) < 200, name


def test_members_after_damage_are_read(tmp_path: Path) -> None:
    """A hundred damaged places among good members lose what they are in, and no more."""
    members = [gzip.compress(b"%05d\n" % number, mtime=0) for number in range(300)]
    for number in range(0, 300, 3):
        members[number] = members[number][:12] + b"\xff\xff" + members[number][14:]
    path = tmp_path / "a.gz"
    path.write_bytes(b"".join(members))
    faults: list[str] = []
    with open_stream(path, faults) as stream:
        data = stream.read()
    assert all(b"%05d\n" % number in data for number in range(300) if number % 3)
    assert len(faults) == 100
