"""The dumps of all events of a wiki, for months before its creation log begins.

Format: https://wikitech.wikimedia.org/wiki/Data_Platform/Data_Lake/Edits/MediaWiki_history_dumps. A
folder a snapshot holds a folder a wiki, and that one bzip2 file a month (large wikis), a year, or
one of all times: tab-separated events without a header. A file of a month of the English Wikipedia
has some 500 MB; it is unpacked in a stream, and nothing but the creations is kept of it.
"""

from __future__ import annotations

import bz2
import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month
from crawlers.http import Fetched, Fetcher

SITE = "wikimedia_dumps"
BASE_URL = "https://dumps.wikimedia.org"
FOLDER = "/other/mediawiki_history/"
MAX_PACKED_BYTES = 2**30
MAX_UNPACKED_BYTES = 16 * 2**30
MAX_LINE_BYTES = 2**20  # a revision's comment has 500 characters at most

_BLOCK = 2**20
# Number of columns -> index of page_id: event_log_id came with the first, temporary users with the
# second. See the schema at the address above.
_PAGE_ID = {76: 26, 78: 28}
_ENTITY, _TYPE, _TIMESTAMP = 2, 3, 4
_TITLE, _NAMESPACE, _IS_DELETED = 1, 3, 8  # behind page_id, as of the event
_ESCAPED = re.compile(r"\\([tnr\\])")
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


@dataclass(frozen=True)
class DumpedCreation:
    """The creation of an article. ``page_id`` is None where the dump does not know it."""

    page_id: int | None
    title: str
    created_at: dt.datetime
    is_deleted: bool


def list_creations(fetcher: Fetcher, database: str, month: Month) -> Iterator[DumpedCreation]:
    """Yield the articles (namespace 0) created in a month, as the newest snapshot has them.

    Args:
        fetcher: has the site SITE.
        database: such as ``enwiki``.
        month: that is in the dump.

    Raises:
        SourceUnavailable: there is no dump, or it is larger than we take.
        SourceChanged: it is not of the known format, or damaged.
    """
    fetched = _get(fetcher, _find_file(fetcher, database, month), MAX_PACKED_BYTES)
    for line in _lines(fetched):
        creation = _read_creation(line, fetched.url)
        if creation and creation.created_at in month:
            yield creation


def _find_file(fetcher: Fetcher, database: str, month: Month) -> str:
    """Return the path of the file of the newest snapshot that holds a month."""
    snapshots = _links(_get(fetcher, FOLDER), r"(\d{4}-\d{2})/?")
    if not snapshots:
        raise SourceUnavailable(f"{BASE_URL}{FOLDER} lists no snapshot; try again later")
    folder = f"{FOLDER}{max(snapshots)}/{database}/"
    name = rf"{max(snapshots)}\.{database}\.([\w-]+)\.tsv\.bz2"
    ranges = _links(_get(fetcher, folder), name)
    for wanted in (str(month), str(month)[:4], "all-times", "all-time"):
        if wanted in ranges:
            return f"{folder}{max(snapshots)}.{database}.{wanted}.tsv.bz2"
    raise SourceUnavailable(f"{BASE_URL}{folder} has no file with {month}; found: {ranges[-5:]}")


def _get(fetcher: Fetcher, path: str, max_bytes: int = 2**20) -> Fetched:
    try:
        return fetcher.get(SITE, path, max_bytes=max_bytes)
    except ItemUnavailable as error:
        raise SourceUnavailable(
            f"months before the creation log need the dumps of {BASE_URL}: {error}"
        ) from error


def _links(fetched: Fetched, pattern: str) -> list[str]:
    """Return what the first group of a pattern finds in the links of a folder's page, sorted."""
    page = fetched.body.decode("utf-8", errors="replace")
    return sorted(set(re.findall(rf'href="(?:[^"]*/)?{pattern}"', page)))


def _lines(fetched: Fetched) -> Iterator[bytes]:
    """Unpack bzip2, all its streams, a block at a time, and yield the lines."""
    packed, rest, num_unpacked, position = memoryview(fetched.body), b"", 0, 0
    unpacker = bz2.BZ2Decompressor()
    while position < len(packed) or not unpacker.needs_input:
        block = packed[position : position + _BLOCK] if unpacker.needs_input else b""
        position += len(block)
        try:
            text = unpacker.decompress(block, _BLOCK)
        except (OSError, EOFError) as error:
            raise _damaged(fetched, str(error)) from error
        num_unpacked += len(text)
        if num_unpacked > MAX_UNPACKED_BYTES:
            raise SourceUnavailable(f"{fetched.url} unpacks to over {MAX_UNPACKED_BYTES} bytes")
        *lines, rest = (rest + text).split(b"\n")
        yield from lines
        if len(rest) > MAX_LINE_BYTES:
            raise _damaged(fetched, f"a line of more than {MAX_LINE_BYTES} bytes")
        if unpacker.eof:
            position -= len(unpacker.unused_data)  # the next stream begins there
            unpacker = bz2.BZ2Decompressor()
            if position == len(packed):
                break
    else:
        raise _damaged(fetched, "the stream ends early")
    if rest:
        yield rest


def _damaged(fetched: Fetched, what: str) -> SourceChanged:
    return SourceChanged(
        f"{fetched.url}: expected tab-separated events, packed by bzip2; {what}; "
        "see whether the dump's format changed"
    )


def _read_creation(line: bytes, url: str) -> DumpedCreation | None:
    """Return the creation of an article that a line tells of; None for all other events."""
    columns = line.decode("utf-8", errors="replace").split("\t")
    if len(columns) not in _PAGE_ID:
        raise SourceChanged(
            f"{url}: expected lines of {' or '.join(map(str, _PAGE_ID))} columns, got "
            f"{len(columns)}: {line[:200]!r}; see whether the dump's format changed"
        )
    at = _PAGE_ID[len(columns)]
    is_creation = columns[_ENTITY] == "page" and columns[_TYPE] in ("create", "create-page")
    if not is_creation or columns[at + _NAMESPACE] != "0":
        return None
    try:
        moment = dt.datetime.fromisoformat(columns[_TIMESTAMP]).replace(tzinfo=dt.UTC)
        page_id = int(columns[at] or 0) or None
    except ValueError as error:
        raise SourceChanged(f"{url}: {error} in {line[:200]!r}") from error
    title = _ESCAPED.sub(lambda match: _UNESCAPED[match[1]], columns[at + _TITLE])
    is_deleted = columns[at + _IS_DELETED] == "true"
    return DumpedCreation(page_id, title.replace("_", " "), moment, is_deleted)
