"""Articles that were new in Wikipedia in the month, as of its end.

An article belongs to the month of its creation, according to the creation log
(https://www.mediawiki.org/wiki/API:Logevents), which begins in June 2018. For earlier months, the
dumps of all events are read. The text is the last revision before the month's end, never the
current one. Articles that were deleted before the crawl are missing. Articles begun as a draft are
also missing, since their creation is logged in the namespace Draft. In a row of the log, ``pageid``
is the page that has the title now, and ``logpage`` is the page that was created.
"""

from __future__ import annotations

import bz2
import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month
from crawlers.apis import mediawiki, wiki_documents
from crawlers.apis.mediawiki import MediaWiki, take
from crawlers.contract import CrawlContext, Drop, Item, Repeat, SourceInfo
from crawlers.web.fetcher import Fetched, Fetcher

# Dumps of all events of a wiki, used for months before the creation log began. Format:
# https://wikitech.wikimedia.org/wiki/Data_Platform/Data_Lake/Edits/MediaWiki_history_dumps. Each
# snapshot has a folder per wiki, with one bzip2 file per month (large wikis), per year, or in
# total. A file has tab-separated events without a header. A month of the English Wikipedia has some
# 500 MB. Files are unpacked as streams, and only creations are kept.
DUMPS_SITE = "wikimedia_dumps"
DUMPS_URL = "https://dumps.wikimedia.org"
FOLDER = "/other/mediawiki_history/"
MAX_PACKED_BYTES = 2**30
MAX_UNPACKED_BYTES = 16 * 2**30
MAX_LINE_BYTES = 2**20  # far above an event's length: its comment has at most 500 characters

_BLOCK = 2**20
# Index of the column page_id by number of columns, in two versions of the format (URL above).
_PAGE_ID = {76: 26, 78: 28}
_ENTITY, _TYPE, _TIMESTAMP = 2, 3, 4
_TITLE, _NAMESPACE, _IS_DELETED = 1, 3, 8  # positions of columns, counted from the column page_id
_ESCAPED = re.compile(r"\\([tnr\\])")
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}

INFO = SourceInfo(
    name="wikipedia_new",
    title="Wikipedia: new articles",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={mediawiki.SITE: mediawiki.BASE_URL, DUMPS_SITE: DUMPS_URL},
    language_sites=mediawiki.LANGUAGE_SITES,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    monthly_bytes=23_000_000,  # bytes of text per month in Li et al. 2024, table 1
)
FIRST_LOGGED = Month("2018-07")  # first month that the creation log covers completely


Creation = tuple[int, dt.datetime]  # page id and time of creation


@dataclass(frozen=True)
class DumpedCreation:
    """The creation of an article, from a dump. ``page_id`` is None if the dump lacks it."""

    page_id: int | None
    title: str
    created_at: dt.datetime
    is_deleted: bool


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the new articles by time of creation; sampled crawls use a seeded random order."""
    for wiki, share in wiki_documents.editions(INFO, context):
        yield from _fetch_edition(wiki, month, share)


def _fetch_edition(wiki: MediaWiki, month: Month, context: CrawlContext) -> Iterator[Item]:
    is_logged = month >= FIRST_LOGGED
    rows = _read_log(wiki, month) if is_logged else _read_dump(wiki, month, context)
    created: dict[int, dt.datetime] = {}
    for row in rows:
        if isinstance(row, Drop):
            yield row
            continue
        page_id, created_at = row
        if page_id in created:
            yield Repeat(wiki.edition.native_id(page_id), "listed twice")
        elif created_at not in month:
            detail = f"created {created_at.isoformat()}"
            yield Drop(wiki.edition.native_id(page_id), "outside_month", detail)
        else:
            created[page_id] = created_at
    yield from wiki_documents.sample_at_month_end(
        wiki,
        month,
        context,
        created,
        lambda created_at, title, revision: wiki_documents.document(
            wiki.edition, title, revision, event_time=created_at, date_kind="created"
        ),
    )


def _read_log(wiki: MediaWiki, month: Month) -> Iterator[Creation | Drop]:
    start, end = mediawiki.month_window(month)
    pieces = wiki.query(
        list="logevents",
        leaction="create/create",
        lenamespace=0,
        ledir="newer",
        lestart=start,
        leend=end,
        lelimit="max",
        leprop="ids|title|type|timestamp",
    )
    for piece, _ in pieces:
        for row in mediawiki.rows_of(piece, "logevents"):
            log_id = take(row, "logid", int)
            if row.get("actionhidden") or not row.get("logpage"):
                hidden = "the log hides which page it was"
                yield Drop(wiki.edition.native_id(f"log:{log_id}"), "suppressed", hidden)
            else:
                yield take(row, "logpage", int), mediawiki.read_time(row)


def _read_dump(wiki: MediaWiki, month: Month, context: CrawlContext) -> Iterator[Creation | Drop]:
    database = f"{wiki.edition.language.replace('-', '_')}wiki"
    for row in list_creations(context.fetcher, database, month):
        if row.is_deleted or not row.page_id:
            native_id = wiki.edition.native_id(row.page_id or f"title:{row.title}")
            yield Drop(native_id, "deleted", row.title)
        else:
            yield row.page_id, row.created_at


def list_creations(fetcher: Fetcher, database: str, month: Month) -> Iterator[DumpedCreation]:
    """Yield the articles (namespace 0) of a wiki, such as ``enwiki``, created in a month.

    Raises:
        SourceUnavailable: there is no dump, or it is larger than the limit.
        SourceChanged: the dump's format is unknown, or the file is damaged.
    """
    fetched = _get(fetcher, _find_file(fetcher, database, month), MAX_PACKED_BYTES)
    for line in _lines(fetched):
        creation = _read_creation(line, fetched.url)
        if creation and creation.created_at in month:
            yield creation


def _find_file(fetcher: Fetcher, database: str, month: Month) -> str:
    snapshots = _links(_get(fetcher, FOLDER), r"(\d{4}-\d{2})/?")
    if not snapshots:
        raise SourceUnavailable(f"{DUMPS_URL}{FOLDER} lists no snapshot; try again later")
    folder = f"{FOLDER}{max(snapshots)}/{database}/"
    name = rf"{max(snapshots)}\.{database}\.([\w-]+)\.tsv\.bz2"
    ranges = _links(_get(fetcher, folder), name)
    for wanted in (str(month), str(month)[:4], "all-times", "all-time"):
        if wanted in ranges:
            return f"{folder}{max(snapshots)}.{database}.{wanted}.tsv.bz2"
    raise SourceUnavailable(f"{DUMPS_URL}{folder} has no file with {month}; found: {ranges[-5:]}")


def _get(fetcher: Fetcher, path: str, max_bytes: int = 2**20) -> Fetched:
    try:
        return fetcher.get(DUMPS_SITE, path, max_bytes=max_bytes)
    except ItemUnavailable as error:
        raise SourceUnavailable(
            f"months before the creation log need the dumps of {DUMPS_URL}: {error}"
        ) from error


def _links(fetched: Fetched, pattern: str) -> list[str]:
    page = fetched.body.decode("utf-8", errors="replace")
    return sorted(set(re.findall(rf'href="(?:[^"]*/)?{pattern}"', page)))


def _lines(fetched: Fetched) -> Iterator[bytes]:
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
            position -= len(unpacker.unused_data)  # the next bzip2 stream starts there
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
