"""Plain texts and saved pages: text files, HTML files."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from core.errors import ItemUnavailable
from crawlers.contract import Drop, DropReason
from crawlers.imports.tables import DataFile, Row, Rows, not_utf8
from crawlers.text import charsets
from crawlers.text.cleaning import too_long
from crawlers.text.pages import MAX_CHARS, read_page


def read_text(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield a text file as one row; its title is its name. A strict import changes no character."""
    size = file.path.stat().st_size
    if size > file.max_bytes:
        yield Drop(file.name, "too_long", f"{file.name}: {too_long(size, file.max_bytes)}")
        return
    if file.is_strict:
        title = file.name
        codec = "utf-8"
    else:
        title = file.path.stem
        codec = "utf-8-sig"  # without the mark of the order of bytes
    try:
        text = file.path.read_bytes().decode(codec)
    except UnicodeDecodeError as error:
        yield file.damaged("file", not_utf8(error))
        return
    yield Row(file.name, {"text": text, "title": title}, "book")


def read_html(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield a page that a user saved as one row: what it states, and the text of its elements."""
    try:
        with file.path.open("rb") as stream:
            html = charsets.decode(stream.read(4 * MAX_CHARS + 1))
        page = read_page(html, file.elements)
    except ItemUnavailable as error:
        yield Drop(file.name, cast(DropReason, error.reason), f"{file.name}: {error}")
        return
    values = {"text": page.text, "title": page.title, "url": page.url, "date": page.published}
    yield Row(file.name, values, "book")
