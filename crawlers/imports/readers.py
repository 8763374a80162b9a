"""The choice of a reader: by the format that the user names, or by the suffix of the file."""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from core.errors import MalformedInput, UnknownName, UsageError
from core.plugins import import_parts
from core.storage.regular import require_regular
from crawlers.contract import Drop
from crawlers.imports import json_files, tables
from crawlers.imports.documents import ImportOptions
from crawlers.imports.plain import read_html, read_text
from crawlers.imports.tables import DataFile, Row, Rows
from crawlers.text.code import is_lfs_pointer

Reader = Callable[[DataFile, Collection[str]], Rows]
# A function of a name that tells whether a file is read, and what a folder without any lacks.
Choice = tuple[Callable[[str], bool], str]
_FORMATS: dict[str, Reader] = {
    "json-list": json_files.read_json_list,
    "jsonl": json_files.read_json_lines,
    "parquet": tables.read_parquet,
    "folder": read_text,
    "html": read_html,
}
_SUFFIXES: dict[str, Reader] = {
    ".parquet": tables.read_parquet,
    ".jsonl": json_files.read_json_lines,
    ".ndjson": json_files.read_json_lines,
    ".json": json_files.read_json,
    ".csv": tables.read_csv,
    ".tsv": tables.read_csv,
    ".txt": read_text,
    ".md": read_text,
}
_PAGES = (".html", ".htm", ".xhtml")
_PACKED = (".gz", ".zst")
_LFS_BYTES = 1024  # a pointer is smaller
_ROW_BYTES = 1000  # what a row costs at least, if it takes no room in the file
_DATA_SUFFIXES = {".json", ".jsonl", ".ndjson", ".parquet"}
_ADVICE = {
    ".pdf": "PDF; make a text file of it first: pdftotext -layout FILE.pdf FILE.txt",
    ".zip": "a zip archive; unpack it first, and import the folder",
    ".html": "a page; import pages with `tidemark import html`",
}


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


def suffix_of(path: Path) -> str:
    """Return the suffix that says what a file is, without that of its packing."""
    suffixes = [each.lower() for each in path.suffixes if each.lower() not in _PACKED]
    return suffixes[-1] if suffixes else ""


def find_files(paths: Sequence[Path], options: ImportOptions) -> list[DataFile]:
    """Return the files of paths that are to be read.

    Raise UsageError for a path that cannot be read, two files of one name, or no file to read.
    """
    found: list[DataFile] = []
    rules = options.max_document_bytes, options.denied_hosts, options.elements, options.is_strict
    try:
        for path in paths:
            require_regular(path)
            if not (path.is_dir() or path.is_file()):
                raise UsageError(f"there is no file or folder {path}")
            for name in regular_files(path) if path.is_dir() else [path.name]:
                require_unicode(name, f"the name {name!r}")
                found.append(DataFile(path / name if path.is_dir() else path, name, *rules))
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error}") from error
    counts = Counter(file.name for file in found)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise UsageError(f"two files are called {twice[0]}; import their common folder instead")
    choices = _list_choices()
    if options.format in choices:
        is_read, lack = choices[options.format]
        found = [each for each in found if is_read(each.name)]
        if not found:
            raise UsageError(f"{paths[0]} holds {lack}")
    return found


def _list_choices() -> dict[str, Choice]:
    """Return the choices of files of the kernel and of extras, by format."""
    lack = f"no page ({', '.join(_PAGES)}); save pages as HTML"
    choices: dict[str, Choice] = {"html": (_is_page, lack)}
    for part in import_parts("readers"):
        choices |= getattr(part, "CHOICES", {})
    return choices


def _is_page(name: str) -> bool:
    return suffix_of(Path(name)) in _PAGES


def list_formats() -> dict[str, Reader]:
    """Return the readers of the kernel and of extras, by format."""
    formats = dict(_FORMATS)
    for part in import_parts("readers"):
        formats |= getattr(part, "FORMATS", {})
    return formats


def list_readers() -> dict[str, Reader]:
    """Return the readers of the kernel and of extras, by suffix."""
    readers = dict(_SUFFIXES)
    for part in import_parts("readers"):
        readers |= getattr(part, "READERS", {})
    return readers


def is_archive(path: Path) -> bool:
    """Return True for a file of a web archive, whose texts may not be passed on."""
    suffix = suffix_of(path)
    return any(suffix in getattr(part, "ARCHIVES", ()) for part in import_parts("readers"))


def read_rows(file: DataFile, format_: str, columns: Collection[str]) -> Rows:
    """Yield the rows of a file by the reader of its format; an unreadable file is a drop."""
    suffix = suffix_of(file.path)
    readers = list_readers()
    reader = readers.get(suffix) if format_ == "auto" else list_formats()[format_]
    if reader is None:
        known = f"{suffix or 'no suffix'}; known: {', '.join(readers)}, each also {_PACKED}"
        yield Drop(file.name, "unknown_format", f"{file.name}: {_ADVICE.get(suffix, known)}")
        return
    try:
        with file.path.open("rb") as stream:
            head = stream.read(_LFS_BYTES)
        if is_lfs_pointer(head):
            yield file.damaged("file", "a pointer of Git LFS, not the file; run `git lfs pull`")
            return
        bytes_left = file.most_bytes
        for row in reader(file, columns):
            bytes_left -= _ROW_BYTES
            if isinstance(row, Row):
                for value in row.values.values():
                    bytes_left -= len(value) if isinstance(value, str) else 0
            if bytes_left < 0:
                yield file.damaged(
                    "file", "stands for far more text or rows than its size; left here"
                )
                return
            yield row
    except OSError as error:
        yield file.damaged("file", f"cannot be read: {error}")


def find_format(path: Path, format_: str) -> str:
    """Return the format of ``path``; for ``auto``, detect it from the path and the first bytes."""
    known = ["auto", *list_formats()]
    if format_ not in known:
        raise UnknownName("format", format_, known)
    require_regular(path)
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
    """Return the format ``folder``; raise UsageError if all files are data files, not texts."""
    suffixes = {Path(name).suffix.lower() for name in regular_files(path)}
    if suffixes and suffixes <= _DATA_SUFFIXES:
        raise UsageError(
            f"{path} holds data files ({', '.join(sorted(suffixes))}), not texts; import each file "
            "by itself, or say --format folder to take each whole file as one document"
        )
    return "folder"


def _guess_file(path: Path) -> str:
    """Return the format that a file's first bytes or suffix show; raise UsageError without one."""
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
