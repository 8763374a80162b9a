"""Books: the chapters of EPUB files."""

from __future__ import annotations

import functools
import posixpath
import unicodedata
import zipfile
import zlib
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from core.errors import ItemUnavailable
from crawlers.contract import Drop
from crawlers.imports.tables import DataFile, Row, Rows
from crawlers.text import articles, charsets
from crawlers.text.cleaning import clean

_MAX_PART = 32 * 2**20  # unpacked bytes of a part; more is a bomb or a scan
_MAX_BOOK = 2**28  # of all chapters together; a bomb may name one part many times
_DC = "{http://purl.org/dc/elements/1.1/}"
_IS_UTF8 = 0x800  # the flag of a part whose name is UTF-8
_STATED = ("title", "language", "date")
_PAGES = ("application/xhtml+xml", "text/html")
_FAULTS = (
    zipfile.BadZipFile, zlib.error, EOFError, KeyError, ParseError, DefusedXmlException, ValueError,
    NotImplementedError, RuntimeError, ItemUnavailable,
)  # fmt: skip


def read_epub(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the chapters of an EPUB file in reading order; all are of one cluster.

    Title, language and date are those of the book. Chapters that cannot be read are drops.
    """
    try:
        with _Book(file.path) as book:
            package = _package_of(book)
            root = fromstring(charsets.decode(_part(book, package)))
            stated = {name: root.findtext(f".//{_DC}{name}") for name in _STATED}
            # A page that the order of reading names again is the same text.
            parts = list(dict.fromkeys(_spine(root, posixpath.dirname(package))))
            found = [info for part in parts if (info := book.find(part))]
            size = sum(info.file_size for info in found)
            if size > _MAX_BOOK:
                raise ValueError(f"chapters of {size} bytes, at most {_MAX_BOOK} are read")
            for number, part in enumerate(parts):
                yield _chapter(file, book, part, number, stated)
    except _FAULTS as error:
        yield file.damaged("file", f"no EPUB, or damaged: {type(error).__name__}: {error}")


class _Book(zipfile.ZipFile):
    """A packed book, whose parts may be named a little otherwise than they are referred to."""

    @functools.cached_property
    def _by_plain_name(self) -> dict[str, zipfile.ZipInfo]:
        return {_plain(_name_of(info)): info for info in reversed(self.infolist())}

    def find(self, name: str) -> zipfile.ZipInfo | None:
        """Return the part of a name, or one that differs in letter case or composed accents."""
        return self.NameToInfo.get(name) or self._by_plain_name.get(_plain(name))


def _name_of(info: zipfile.ZipInfo) -> str:
    """Return the name of a part; many programs write UTF-8 without the flag that says so."""
    if info.flag_bits & _IS_UTF8:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _package_of(book: _Book) -> str:
    """Return the path of the book's package, which lists its chapters."""
    container = fromstring(charsets.decode(_part(book, "META-INF/container.xml")))
    found = container.find(".//{*}rootfile")
    if found is None:
        raise ValueError("META-INF/container.xml names no package")
    return str(found.get("full-path"))


def _part(book: _Book, name: str) -> bytes:
    """Return a file of the book; raise an error if it is absent or too large."""
    info = book.find(name)
    if info is None:
        raise KeyError(f"the archive has no part {name!r}")
    if info.file_size > _MAX_PART:
        raise ValueError(f"{name} has {info.file_size} bytes, at most {_MAX_PART} are read")
    return book.read(info)


def _spine(root: Any, folder: str) -> Iterator[str]:
    """Yield the names of the pages in reading order; the table of contents is left out."""
    items = {item.get("id"): item for item in root.iterfind(".//{*}manifest/{*}item")}
    for each in root.iterfind(".//{*}spine/{*}itemref"):
        item = items.get(each.get("idref"))
        if item is None or item.get("media-type") not in _PAGES:
            continue
        if "nav" not in (item.get("properties") or "").split():
            href = unquote((item.get("href") or "").partition("#")[0])
            yield posixpath.normpath(posixpath.join(folder, href)).lstrip("/")


def _chapter(
    file: DataFile, book: _Book, name: str, number: int, stated: dict[str, str | None]
) -> Row | Drop:
    """Return a chapter as a row; a Drop if it is damaged."""
    try:
        text = clean(articles.to_text(charsets.decode(_part(book, name))))
    except _FAULTS as error:
        why = f"chapter {number} ({name}): {type(error).__name__}: {error}"
        return file.damaged(number, why)
    return Row(f"{file.name}:{number}", {**stated, "text": text, "cluster": file.name}, "book")
