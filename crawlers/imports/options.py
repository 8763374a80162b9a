"""The options of an import of texts."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.settings import MAX_DOCUMENT_BYTES
from crawlers.imports.dating import Dating
from crawlers.text.cleaning import MIN_CHARS
from crawlers.text.pages import ARTICLE

FIELDS = ("text", "id", "title", "url", "date", "licence", "language", "category")
UNKNOWN = "LicenseRef-unknown"


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import."""

    dating: Dating = field(default_factory=Dating)
    columns: Mapping[str, str] = field(default_factory=dict)  # column by field; default: its name
    format: str = "auto"  # a name of ``readers.FORMATS``; ``auto``: by the suffix of each file
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
    is_local: bool = False  # the texts may not be passed on; set by ``import_set``
    scratch: Path = Path(tempfile.gettempdir(), "tidemark")  # folder of temporary files
