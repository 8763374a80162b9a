"""Reading of users' files: JSON lists, JSON Lines, Parquet, and folders of text files.

No input is repaired: a malformed file is refused. The error names the file, the record and, for
bytes that are not UTF-8, their offset.
"""

from __future__ import annotations

import codecs
import datetime as dt
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.corpus.partition import Content, Partition, list_sealed
from core.errors import MalformedInput, UnknownName, UsageError
from core.month import require_complete
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.text.cleaning import too_long


def require_target(partition: Partition, content: Content, store: Store) -> None:
    """Raise an error for a source without name or of other content, or an unfinished month."""
    if not partition.source.strip():
        raise UsageError("the source needs a name; say --source NAME")
    if partition.month is not None:
        require_complete(partition.month)
    for seal in list_sealed(store, partition.source):
        if seal.content != content and seal.partition != partition:
            raise UsageError(
                f"{seal.partition} is sealed as {seal.content}, so {content} needs a source of "
                "its own: figures over the months of a source must not mix the two"
            )


def regular_files(folder: Path) -> list[str]:
    """Return sorted relative paths of a folder's regular files, without links and hidden files."""

    def refuse(error: OSError) -> None:
        raise error

    found = []
    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            file = Path(parent) / name
            if not name.startswith(".") and file.is_file() and not file.is_symlink():
                found.append(file.relative_to(folder).as_posix())
    return sorted(found)


def require_unicode(text: str, where: str) -> str:
    """Return ``text``; refuse lone surrogates, which are possible in JSON, but not in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MalformedInput(
            f"{where}: character {error.start} is a lone surrogate "
            f"(U+{ord(text[error.start]):04X}), half of a character; write the text again"
        ) from error
    return text


_SPACE = re.compile(r"[ \t\n\r]*")
_DETAILS = ("title", "url", "language", "licence", "category")
_COLUMNS = ("text", "id", "date", *_DETAILS)
_PARQUET_ROWS = 32  # Parquet rows read at a time; few, since a row may be large
_DATA_SUFFIXES = {".json", ".jsonl", ".ndjson", ".parquet"}


@dataclass(frozen=True)
class Record:
    """One text from a user's file, with its metadata."""

    where: str  # file and record, for error messages
    native_id: str  # the record's ``id`` field, else ``<file name>:<index>``
    text: str  # the text, unchanged from the file
    # title, url, language, licence, category and date, if the record has them
    details: Mapping[str, str] = field(default_factory=dict)


def read_records(
    path: Path, format_: str, max_bytes: int, names: Mapping[str, str] | None = None
) -> Iterator[Record | Drop]:
    """Yield the records of a file or folder in their order.

    ``names`` has the file's own names of fields, by our name: ``{"text": "content"}``. Files and
    lines that are too long for a text of ``max_bytes`` are dropped unread. Raise MalformedInput if
    a file is not of format ``format_``; the error names file and record. Raise UsageError for names
    of unknown fields, or of a format without fields.
    """
    if names and format_ not in {"jsonl", "parquet"}:
        raise UsageError(f"{path} is a {format_}, which has no fields to name; omit --field")
    if unknown := sorted(set(names or {}) - set(_COLUMNS)):
        raise UnknownName("field", unknown[0], list(_COLUMNS))
    try:
        yield from FORMATS[format_](path, max_bytes, names or {})
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error}") from error


def find_format(path: Path, format_: str) -> str:
    """Return the format of ``path``; for ``auto``, detect it from the path and the first bytes."""
    if format_ not in {"auto", *FORMATS}:
        raise UnknownName("format", format_, ["auto", *FORMATS])
    if not (path.is_dir() or path.is_file()):
        raise UsageError(f"there is no file or folder {path}")
    if path.is_dir() != (format_ == "folder") and format_ != "auto":
        raise UsageError(f"{path} is {'a' if path.is_dir() else 'no'} folder; see --format")
    if format_ != "auto":
        return format_
    try:
        return _guess_folder(path) if path.is_dir() else _guess_file(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _guess_folder(path: Path) -> str:
    suffixes = {Path(name).suffix.lower() for name in regular_files(path)}
    if suffixes and suffixes <= _DATA_SUFFIXES:
        raise UsageError(
            f"{path} holds data files ({', '.join(sorted(suffixes))}), not texts; import each file "
            "by itself, or say --format folder to take each whole file as one document"
        )
    return "folder"


def _guess_file(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(4096).removeprefix(codecs.BOM_UTF8)
    if start.startswith(b"PAR1") or path.suffix.lower() == ".parquet":
        return "parquet"
    if path.suffix.lower() in {".jsonl", ".ndjson"} or start.lstrip()[:1] in {b"{", b'"'}:
        return "jsonl"
    if path.suffix.lower() == ".json" or start.lstrip()[:1] == b"[":
        return "json-list"
    raise UsageError(
        f"{path}: cannot tell the format; expected a JSON list of strings, JSON lines or Parquet. "
        "Say --format, or put text files into a folder and import the folder"
    )


def _json_list(path: Path, max_bytes: int, names: Mapping[str, str]) -> Iterator[Record]:
    text = _decode(path.read_bytes(), str(path), has_mark=True)
    for index, entry in enumerate(_list_entries(text, str(path))):
        where = f"{path}: record {index}"
        if not isinstance(entry, str):
            raise MalformedInput(
                f"{where} is {_kind(entry)}; expected a list of strings. Records with more fields "
                "go into JSON lines, one object a line"
            )
        yield Record(where, f"{path.name}:{index}", require_unicode(entry, where))


def _list_entries(text: str, name: str) -> Iterator[object]:
    """Parse a JSON list entry by entry, so that errors can name the entry."""
    position = _skip_space(text, 0)
    if text[position : position + 1] != "[":
        raise MalformedInput(f"{name}: expected a JSON list of strings, found {text[:20]!r}")
    position = _skip_space(text, position + 1)
    index = 0
    while index or text[position : position + 1] != "]":
        entry, position = _parse(text, position, f"{name}: record {index}")
        yield entry
        position = _skip_space(text, position)
        mark = text[position : position + 1]
        if mark == "]":
            break
        if mark != ",":
            found = repr(mark) if mark else "the end of the file"
            raise MalformedInput(f"{name}: expected ',' or ']' after record {index}, found {found}")
        position = _skip_space(text, position + 1)
        index += 1
    if _skip_space(text, position + 1) != len(text):
        raise MalformedInput(f"{name}: there is more after the list's end (character {position})")


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _parse(text: str, position: int, where: str) -> tuple[object, int]:
    """Return the JSON value at ``position``, and the position of its end."""
    try:
        return json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text, position)
    except RecursionError as error:
        raise MalformedInput(f"{where} is nested too deeply") from error
    except ValueError as error:
        raise MalformedInput(f"{where} is not JSON: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _json_lines(path: Path, max_bytes: int, names: Mapping[str, str]) -> Iterator[Record | Drop]:
    # JSON escapes make a text at most six times longer; 2**20 bytes are for other fields.
    limit = 6 * max_bytes + 2**20
    offset = 0
    with path.open("rb") as file:
        for number in itertools.count(1):
            line = file.readline(limit)
            if not line:
                return
            native_id, where = f"{path.name}:{number}", f"{path}: line {number}"
            if len(line) == limit and not line.endswith(b"\n"):
                size = limit + _skip_line(file)
                yield Drop(native_id, "too_long", f"line {number}: {too_long(size, max_bytes)}")
                offset += size
                continue
            text = _decode(line, where, offset, has_mark=number == 1)
            offset += len(line)
            if text.strip():
                yield _line_record(text, where, native_id, names)


def _skip_line(file: IO[bytes]) -> int:
    size = 0
    while block := file.readline(2**20):
        size += len(block)
        if block.endswith(b"\n"):
            break
    return size


def _line_record(line: str, where: str, native_id: str, names: Mapping[str, str]) -> Record:
    entry, end = _parse(line, _skip_space(line, 0), where)
    if _skip_space(line, end) != len(line):
        raise MalformedInput(f"{where} holds more than one JSON value (character {end})")
    if isinstance(entry, str):
        return Record(where, native_id, require_unicode(entry, where))
    if not isinstance(entry, dict):
        raise MalformedInput(
            f"{where} is {_kind(entry)}; expected an object with a `text` field, or a string"
        )
    return _record(entry, where, native_id, names)


def _parquet(path: Path, max_bytes: int, names: Mapping[str, str]) -> Iterator[Record]:
    row = 0
    try:
        with pq.ParquetFile(path) as file:
            columns = _known_columns(file.schema_arrow, path, names)
            text = names.get("text", "text")
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=columns):
                for index in range(batch.num_rows):
                    values = {name: batch[name][index].as_py() for name in columns}
                    values[text] = values[text] or ""  # a NULL text counts as empty
                    yield _record(values, f"{path}: row {row}", f"{path.name}:{row}", names)
                    row += 1
    except UnicodeDecodeError as error:
        raise MalformedInput(f"{path}: row {row}: byte {error.start} is not UTF-8") from error
    except (pa.ArrowException, OSError) as error:
        raise MalformedInput(f"{path}: row {row}: not Parquet or damaged: {error}") from error


def _known_columns(schema: pa.Schema, path: Path, names: Mapping[str, str]) -> list[str]:
    text = names.get("text", "text")
    if text not in schema.names:
        raise MalformedInput(f"{path} has no `{text}` column; its columns are: {schema.names}")
    kind = schema.field(text).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if not any(is_string(kind) for is_string in strings):
        raise MalformedInput(f"{path}: column `{text}` is {kind}; expected strings")
    known = dict.fromkeys(names.get(name, name) for name in _COLUMNS)
    return [name for name in known if name in schema.names]


def _folder(path: Path, max_bytes: int, names: Mapping[str, str]) -> Iterator[Record | Drop]:
    for name in regular_files(path):
        size = (path / name).stat().st_size
        if size > max_bytes:
            yield Drop(name, "too_long", too_long(size, max_bytes))
            continue
        text = _decode((path / name).read_bytes(), str(path / name))
        native_id = require_unicode(name, f"the name {name!r}")
        yield Record(str(path / name), native_id, text, {"title": name})


def _record(
    entry: Mapping[str, Any], where: str, native_id: str, names: Mapping[str, str]
) -> Record:
    text = names.get("text", "text")
    if text not in entry:
        fields = ", ".join(sorted(entry)[:10]) or "none"
        raise MalformedInput(
            f"{where} has no `{text}` field; its fields are: {fields}. "
            "If the text is in another field, say --field text=NAME"
        )
    if not isinstance(entry[text], str):
        raise MalformedInput(f"{where}: `{text}` is {_kind(entry[text])}; expected a string")
    values = {name: entry.get(names.get(name, name)) for name in _COLUMNS}
    details = {}
    for name in _DETAILS:
        if (value := values[name]) is not None:
            if not isinstance(value, str):
                raise MalformedInput(f"{where}: `{name}` is {_kind(value)}; expected a string")
            details[name] = require_unicode(value, where)
    if date := _scalar(values, "date", where):
        details["date"] = date
    own_id = _scalar(values, "id", where)
    return Record(where, own_id or native_id, require_unicode(entry[text], where), details)


def _scalar(entry: Mapping[str, Any], name: str, where: str) -> str | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MalformedInput(f"{where}: `{name}` is {_kind(value)}; expected a string or a number")
    return require_unicode(str(value), where)


def _decode(data: bytes, where: str, offset: int = 0, has_mark: bool = False) -> str:
    skipped = 3 if has_mark and data.startswith(codecs.BOM_UTF8) else 0
    try:
        return data[skipped:].decode()
    except UnicodeDecodeError as error:
        at = offset + skipped + error.start
        raise MalformedInput(
            f"{where}: byte {at} (0x{data[skipped + error.start]:02x}) is not UTF-8; convert the "
            "file to UTF-8, for instance with iconv"
        ) from error


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


FORMATS: dict[str, Callable[[Path, int, Mapping[str, str]], Iterator[Record | Drop]]] = {
    "json-list": _json_list,
    "jsonl": _json_lines,
    "parquet": _parquet,
    "folder": _folder,
}
