"""Rows of JSON files: JSON lines and JSON lists, plain or packed.

A row that cannot be read is a drop that names its place; in JSON lines, reading goes on with the
next line.
"""

from __future__ import annotations

import codecs
import functools
import io
import itertools
import json
import re
from collections.abc import Collection
from typing import IO

from crawlers.contract import Drop
from crawlers.imports.tables import (
    CHUNK,
    DataFile,
    Row,
    Rows,
    damage_of,
    kind_of,
    longest,
    not_utf8,
    opened,
)
from crawlers.text.cleaning import too_long

TEXT = "text"  # column of a list of strings
_OPENING = re.compile(r"\s*\[\s*")
_COMMA = re.compile(r"\s*,\s*")
_END = re.compile(r"\s*\]\s*")
_EMPTY = re.compile(r"\s*\[\s*\]\s*")


@functools.cache
def _decoder(is_strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=_refuse_constant if is_strict else None)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def read_json_lines(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the objects (or strings) of the lines; blank lines are ignored."""
    limit = longest(file)
    offset = 0
    with opened(file) as (stream, faults):
        for number in itertools.count(1):
            line = stream.readline(limit)
            if not line:
                break
            start = offset
            offset = offset + len(line)
            if len(line) == limit and not line.endswith(b"\n"):
                offset += _skip_line(stream)
                detail = f"{file.name}: line {number}: {too_long(offset - start, file.max_bytes)}"
                yield Drop(f"{file.name}:{number}", "too_long", detail)
                continue
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if line.strip():
                yield _json_row(file, line, number, start)
        yield from damage_of(file, faults)


def _skip_line(stream: IO[bytes]) -> int:
    """Read to the end of the current line; return the number of bytes."""
    size = 0
    while block := stream.readline(CHUNK):
        size += len(block)
        if block.endswith(b"\n"):
            break
    return size


def _json_row(file: DataFile, line: bytes, number: int, start: int) -> Row | Drop:
    """Return a line of JSON as a row, or the drop that says what is wrong with it."""
    where = f"line {number} (byte {start})"
    try:
        return _row(file, _decoder(file.is_strict).decode(line.decode()), number, where)
    except UnicodeDecodeError as error:
        return file.damaged(number, f"{where}: {not_utf8(error, start)}")
    except (ValueError, RecursionError) as error:
        return file.damaged(number, f"{where} {_fault_in(error)}")


def _fault_in(error: Exception) -> str:
    """Say what is wrong with JSON; the place of the error is that in a part of the file."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return f"is not JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}"


def _row(file: DataFile, value: object, number: int, where: str) -> Row | Drop:
    """Return a JSON value as a row: an object, or a string as its only column ``text``."""
    if isinstance(value, str):
        value = {TEXT: value}
    if not isinstance(value, dict):
        kind = kind_of(value)
        return file.damaged(number, f"{where} is {kind}, neither an object nor a string")
    return Row(f"{file.name}:{number}", value)


def read_json_list(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the strings or objects of a JSON list; nothing can be read after a damaged entry."""
    decode = _decoder(file.is_strict).raw_decode
    limit = longest(file)
    bad_byte = _first_bad_byte(file) if file.is_strict else None
    if bad_byte:
        yield file.damaged("file", bad_byte)
        return
    with opened(file) as (stream, faults):
        reader = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        text = ""
        number = 0
        separator = _OPENING
        is_file_end = False
        fault = ""
        while not is_file_end and len(text) < limit:
            block = reader.read(max(CHUNK, len(text)))  # doubles for an entry that is longer
            text = text + block
            position = 0
            is_file_end = not block
            while start := _start_of_entry(text, position, separator):
                try:
                    value, end = decode(text, start)
                except (ValueError, RecursionError) as error:
                    fault = _fault_in(error)
                    break
                if end == len(text) and not is_file_end:
                    break  # a number may go on
                yield _row(file, value, number, f"record {number}")
                position = end
                number = number + 1
                separator = _COMMA
                fault = ""
            text = text[position:]
        if not (_END if number else _EMPTY).fullmatch(text):
            yield file.damaged(number, _fault_of_list(text, number, fault))
        yield from damage_of(file, faults)


def _first_bad_byte(file: DataFile) -> str | None:
    """Return where a file stops being UTF-8, as a message; None if all of it is."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0
    with opened(file) as (stream, _):
        while True:
            block = stream.read(CHUNK)
            num_pending = len(decoder.getstate()[0])
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return not_utf8(error, offset - num_pending)
            if not block:
                return None
            offset += len(block)


def _fault_of_list(text: str, number: int, fault: str) -> str:
    """Say what is wrong with the rest of a JSON list, from record ``number`` on."""
    rest = text.encode(errors="replace").decode().strip()
    found = repr(rest[:40]) if rest else "the end of the file"
    if fault or rest in (",", "[", ",]"):
        return f"record {number} {fault or 'is not JSON'}, and later ones are not read: {found}"
    if rest.startswith("]") or (rest.startswith("[") and not number):
        return f"there is more after the list's end: {found}"
    if not number:
        return f"expected a JSON list, found {found}"
    return f"expected ',' or ']' after record {number - 1}, found {found}"


def _start_of_entry(text: str, position: int, mark: re.Pattern[str]) -> int | None:
    """Return where the next entry of a list begins; None at the end of the text or the list."""
    found = mark.match(text, position)
    start = found.end() if found else len(text)
    return start if start < len(text) and text[start] != "]" else None


def read_json(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the rows of a JSON list, or of JSON lines, by the first character."""
    with opened(file) as (stream, _):
        start = stream.peek(CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
    yield from (read_json_list if start[:1] == b"[" else read_json_lines)(file, columns)
