"""What the readers of published files of questions share: entries of JSON, read with suspicion."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import MalformedInput, UsageError
from core.questions import Question
from crawlers.contract import Drop, Repeat
from crawlers.user_files import regular_files, require_unicode

MAX_FILE_BYTES = 256 * 2**20  # the largest that is published has 20 MB
MAX_ENTRIES = 1_000_000  # of a file
SUFFIXES = (".json", ".jsonl")

Entry = dict[str, Any]


@dataclass(frozen=True)
class File:
    """A file's JSON: one value, or the values of its lines.

    Attributes:
        path: as given, for messages.
        value: what it holds; a list where it has lines.
    """

    path: Path
    value: Any

    def where(self, number: int) -> str:
        """Return what to call an entry, counted from 1."""
        return f"{self.path}: entry {number}"


@dataclass
class Published:
    """What files hold.

    Attributes:
        questions: resolved or void, by id.
        others: what is not kept.
        passed_over: how many entries are of another kind, by kind.
    """

    questions: dict[str, Question] = field(default_factory=dict)
    others: list[Drop | Repeat] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)


def read_files(path: Path) -> Iterator[File]:
    """Read a file, or the JSON files of a folder and those below it, by path.

    Raises:
        UsageError: there is no such file, or the folder has none that ends in SUFFIXES.
        MalformedInput: one is too large, not UTF-8, or no JSON; names the line where it has lines.
    """
    if not path.exists():
        raise UsageError(f"there is no {path}")
    names = [path / name for name in regular_files(path)] if path.is_dir() else [path]
    chosen = [name for name in names if name.suffix in SUFFIXES or not path.is_dir()]
    if not chosen:
        raise UsageError(f"{path} has no file that ends in {' or '.join(SUFFIXES)}")
    for name in chosen:
        yield File(name, _read(name))


def _read(path: Path) -> Any:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise MalformedInput(f"{path} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    except UnicodeDecodeError as error:
        raise MalformedInput(f"{path} is not UTF-8 at byte {error.start}") from error
    try:
        return json.loads(text)
    except RecursionError as error:
        raise MalformedInput(f"{path}: its JSON is nested too deep") from error
    except ValueError as whole:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2:
            raise MalformedInput(f"{path} is no JSON: {whole}") from whole
        return [_line(f"{path}: line {number}", line) for number, line in lines]


def _line(where: str, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedInput(f"{where} is no JSON: {error}") from error


def entries(value: object, where: str) -> list[Entry]:
    """Return a list of objects.

    Raises:
        MalformedInput: it is something else, or too long; names the entry.
    """
    if not isinstance(value, list):
        raise MalformedInput(f"{where}: expected a list of entries, got {value!r:.80}")
    if len(value) > MAX_ENTRIES:
        raise MalformedInput(f"{where}: {len(value):,} entries; at most {MAX_ENTRIES:,} are read")
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict):
            raise MalformedInput(f"{where}: entry {number} is {entry!r:.80}; expected an object")
    return value


def required(entry: Entry, key: str, where: str) -> str:
    """Return a text that must be there.

    Raises:
        MalformedInput: it is not; names the entry and the key.
    """
    found = entry.get(key)
    if not isinstance(found, str) or not found.strip():
        raise MalformedInput(f"{where}: {key!r} is {found!r:.80}; expected a text")
    return require_unicode(found, f"{where}: {key!r}")


def optional(entry: Entry, key: str, where: str) -> str | None:
    """Return a text that may be missing, ``null``, empty or ``N/A``.

    Raises:
        MalformedInput: it is something else; names the entry and the key.
    """
    found = entry.get(key)
    if found in (None, "", "N/A"):
        return None
    return required(entry, key, where)
