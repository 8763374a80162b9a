"""The options of an import of texts, and the documents that its rows become."""

from __future__ import annotations

import datetime as dt
import json
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import MalformedInput
from core.schemas.tables import DocumentRow
from core.settings import MAX_DOCUMENT_BYTES
from crawlers.contract import Drop
from crawlers.imports.dating import Dated, Dating
from crawlers.imports.tables import Row, kind_of, no_text_column
from crawlers.text.cleaning import MIN_CHARS, clean
from crawlers.text.pages import ARTICLE

FIELDS = ("text", "id", "title", "url", "date", "licence", "language", "category")
_OTHERS = (
    "native_id", "cluster_id", "event_time", "date_kind", "language_score", "extra",
    "attribution",
)  # fmt: skip
COLUMNS = {*FIELDS, *_OTHERS}  # of the documents, and some more
UNKNOWN = "LicenseRef-unknown"
_ODD = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import."""

    dating: Dating = field(default_factory=Dating)
    columns: Mapping[str, str] = field(default_factory=dict)  # column by field; default: its name
    source_column: str | None = None  # its values name sources, as ``naming`` says
    format: str = "auto"  # a name of ``readers.list_formats``; ``auto``: by the suffix of each file
    is_strict: bool = False  # a damaged row, or an id of two rows, is an error
    sift: bool | None = None  # filter as ``sifting`` says; None: if there is a web archive
    clean: bool = False  # clean texts like crawled texts, and drop repeated ones
    min_chars: int = MIN_CHARS  # shorter texts are dropped as ``too_short``
    # texts with more bytes are dropped as ``too_long`` (TIDEMARK_MAX_DOCUMENT_BYTES)
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    licence: str = UNKNOWN  # SPDX id of rows that state none
    language: str | None = None  # of rows that state none; with ``sift``, the only one to keep
    regime: str | None = None  # label of how the texts came about, to tell months apart
    replace: bool = False  # write a new version if different content is sealed already
    denied_hosts: Collection[str] = ()  # of web archives
    elements: str = ARTICLE  # XPath of the elements of saved pages that have the text
    is_local: bool = False  # the texts may not be passed on; always of web archives
    origins: Sequence[Mapping[str, object]] = ()  # of files that came from addresses
    scratch: Path = Path(tempfile.gettempdir(), "tidemark")  # folder of temporary files

    @property
    def naming_columns(self) -> tuple[str, ...]:
        """The column of sources, if there is one."""
        return (self.source_column,) if self.source_column else ()


def by_field(row: Row, columns: Mapping[str, str], options: ImportOptions) -> Row | Drop:
    """Return a row of a table with its values by field; or a drop if it has no text."""
    values = {name: row.values.get(column) for name, column in columns.items()}
    text = columns["text"]
    if text not in row.values:
        why = no_text_column(text, row.values)
        return Drop(row.place, "parse_error", f"{row.place}: {why}"[:500])
    if not isinstance(values["text"] or "", str):
        why = f"column `{text}` is {kind_of(values['text'])}; expected strings"
        return Drop(row.place, "parse_error", f"{row.place}: {why}")
    values |= {name: row.values.get(name) for name in options.dating.columns}
    return Row(row.place, values)


def document_of(row: Row, dated: Dated, options: ImportOptions) -> DocumentRow | Drop:
    """Return a row as the columns of a document, or a drop for text that is not Unicode."""
    stated = {name: _stated(row, name, options.is_strict) for name in FIELDS if name != "text"}
    language = stated["language"] or (None if options.sift else options.language)
    text = row.values["text"] or ""
    try:
        for each in (text, *filter(None, stated.values())):
            # A text that cannot be encoded has lone surrogates.
            if not each.isascii():
                each.encode()
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        why = f"character {error.start} is a lone surrogate (U+{code:04X}): half of a character"
        return Drop(row.place, "damaged", f"{row.place}: {why}, or was no UTF-8")
    if options.clean:
        text = clean(text, (language or "").startswith("code:"))
    title = stated["title"]
    extra = {} if options.is_strict else {"record": row.place}
    extra |= {"date": stated["date"]} if stated["date"] else {}
    return {
        "native_id": stated["id"] or row.place,
        "cluster_id": row.values.get("cluster"),
        "event_time": dated.moment,
        "date_kind": "given" if dated.month else "none",
        "url": stated["url"],
        "title": title if title is None or options.is_strict else _ODD.sub(" ", title),
        "category": stated["category"],
        "language": language,
        "licence": stated["licence"] or (UNKNOWN if row.origin == "web" else options.licence),
        "extra": json.dumps(extra) if extra else None,
        "attribution": row.place,  # until it is sealed: a column that imports do not have
        "text": text,
    }


def _stated(row: Row, name: str, is_strict: bool) -> str | None:
    """Return a field as text; raise MalformedInput for one of another kind, if strict."""
    value = row.values.get(name)
    if value is None:
        return None
    kinds = (str, int, dt.date) if name in ("id", "date") else (str,)
    if is_strict and (isinstance(value, bool) or not isinstance(value, kinds)):
        kind = kind_of(value)
        raise MalformedInput(f"{row.place}: `{name}` is {kind}; expected a string")
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return text if is_strict else text.strip() or None
