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
import contextlib
import datetime as dt
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month, Period, month_range
from crawlers.apis import mediawiki, wiki_documents
from crawlers.apis.mediawiki import MediaWiki, take
from crawlers.contract import CrawlContext, Drop, Item, Repeat, SourceInfo
from crawlers.web.fetcher import Fetcher

# Dumps of all events of a wiki, used for months before the creation log began. Format:
# https://wikitech.wikimedia.org/wiki/Data_Platform/Data_Lake/Edits/MediaWiki_history_dumps. Each
# snapshot has a folder per wiki, with one bzip2 file per month (large wikis), per year, or in
# total. A file has tab-separated events without a header. In 2026 a month of the English Wikipedia
# has 571 to 793 MB. Files are unpacked as they come, and only creations are kept.
DUMPS_SITE = "wikimedia_dumps"
DUMPS_URL = "https://dumps.wikimedia.org"
FOLDER = "/other/mediawiki_history/"
MAX_PACKED_BYTES = 4 * 2**30
MAX_UNPACKED_BYTES = 64 * 2**30
MAX_LINE_BYTES = 2**20  # far above an event's length: its comment has at most 500 characters

_BLOCK = 2**20
_MAX_DIGITS = 18  # of a page id
_SECOND = dt.timedelta(seconds=1)
_DAY = dt.timedelta(days=1)  # snapshots are deleted after two months: do not cache their list
# positions of columns, counted from the column page_id
_TITLE = 1
_NAMESPACE = 3
_IS_DELETED = 8
_ENTITIES = {b"page", b"revision", b"user"}
_CREATIONS = {b"create", b"create-page"}
_FLAGS = {"true", "false", ""}
_ESCAPED = re.compile(r"\\([tnr\\])")
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


@dataclass(frozen=True)
class _Layout:
    """Positions of columns; type and time of an event follow its entity."""

    entity: int
    page_id: int


# By number of columns. The published layout has 76; the snapshot 2026-08 has 78, among them
# event_log_id before the entity.
_LAYOUTS = {76: _Layout(1, 26), 78: _Layout(2, 28)}

INFO = SourceInfo(
    name="wikipedia_new",
    title="Wikipedia: new articles",
    licence="CC-BY-SA-4.0",
    language="en",
    category="encyclopedia",
    sites={mediawiki.SITE: mediawiki.BASE_URL, DUMPS_SITE: DUMPS_URL},
    language_sites=mediawiki.LANGUAGE_SITES,
    shares_pace=mediawiki.PACE,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    needs_contact=mediawiki.NEEDS_CONTACT,
    monthly_bytes=23_000_000,  # bytes of text per month in Li et al. 2024, table 1
    whole_months=None,
)
FIRST_LOGGED = Month("2018-07")  # first month that the creation log covers completely


Creation = tuple[int, dt.datetime]  # page id and time of creation


@dataclass(frozen=True)
class DumpedCreation:
    """The creation of an article, from a dump."""

    page_id: int | None  # None if the dump lacks it
    title: str
    created_at: dt.datetime | None  # None if the dump lacks it
    is_deleted: bool


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield the new articles by time of creation; sampled crawls use a seeded random order."""
    for wiki, share in wiki_documents.editions(INFO, context):
        yield from _fetch_edition(wiki, month, share)


def _fetch_edition(wiki: MediaWiki, month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield the new articles of one wiki, and the drops of the lists of creations."""
    is_logged = month.start >= FIRST_LOGGED.start
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


def _read_log(wiki: MediaWiki, month: Period) -> Iterator[Creation | Drop]:
    """Yield the creations in a month from the wiki's log, and drops of hidden ones."""
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
        for row in mediawiki.list_rows(piece, "logevents"):
            log_id = take(row, "logid", int)
            if row.get("actionhidden") or not row.get("logpage"):
                hidden = "the log hides which page it was"
                yield Drop(wiki.edition.native_id(f"log:{log_id}"), "suppressed", hidden)
            else:
                yield take(row, "logpage", int), mediawiki.read_time(row)


def _read_dump(wiki: MediaWiki, month: Period, context: CrawlContext) -> Iterator[Creation | Drop]:
    """Yield the creations in a month from dumps, and drops of deleted or undated ones."""
    database = f"{wiki.edition.language.replace('-', '_')}wiki"
    first = Month.of(month.start)
    last = Month.of(month.end - _SECOND)
    files = (list_creations(context.fetcher, database, each) for each in month_range(first, last))
    for row in itertools.chain.from_iterable(files):
        native_id = wiki.edition.native_id(row.page_id or f"title:{row.title}")
        if row.created_at is None:
            yield Drop(native_id, "no_date", row.title)
        elif row.created_at not in month:
            continue
        elif row.is_deleted or not row.page_id:
            yield Drop(native_id, "deleted", row.title)
        else:
            yield row.page_id, row.created_at


def list_creations(fetcher: Fetcher, database: str, month: Month) -> list[DumpedCreation]:
    """Return the articles (namespace 0) of a wiki, such as ``enwiki``, created in a month.

    Creations without a time are included.

    Raises:
        SourceUnavailable: there is no dump, or it is larger than the limit.
        SourceChanged: the dump's format is unknown, the file is damaged, or has no creations.
    """
    path = _find_file(fetcher, database, month)
    dump = _Dump(f"{fetcher.base_url(DUMPS_SITE)}{path}", month)
    with _explained():
        fetcher.download(DUMPS_SITE, path, dump.feed, MAX_PACKED_BYTES)
    return dump.finish()


def _find_file(fetcher: Fetcher, database: str, month: Month) -> str:
    """Return the path of the smallest file of the newest snapshot that covers a month."""
    snapshots = _links(fetcher, FOLDER, r"(\d{4}-\d{2})/?")
    if not snapshots:
        raise SourceUnavailable(f"{DUMPS_URL}{FOLDER} lists no snapshot; try again later")
    folder = f"{FOLDER}{max(snapshots)}/{database}/"
    name = rf"{max(snapshots)}\.{database}\.([\w-]+)\.tsv\.bz2"
    ranges = _links(fetcher, folder, name)
    for wanted in (str(month), str(month)[:4], "all-times", "all-time"):
        if wanted in ranges:
            return f"{folder}{max(snapshots)}.{database}.{wanted}.tsv.bz2"
    raise SourceUnavailable(f"{DUMPS_URL}{folder} has no file with {month}; found: {ranges[-5:]}")


def _links(fetcher: Fetcher, path: str, pattern: str) -> list[str]:
    """Return the sorted parts of a page's links that a pattern's group matches."""
    with _explained():
        fetched = fetcher.get(DUMPS_SITE, path, not_before=dt.datetime.now(dt.UTC) - _DAY)
    page = fetched.body.decode("utf-8", errors="replace")
    return sorted(set(re.findall(rf'href="(?:[^"]*/)?{pattern}"', page)))


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn ItemUnavailable into SourceUnavailable, which says why dumps are needed."""
    try:
        yield
    except ItemUnavailable as error:
        raise SourceUnavailable(
            f"months before the creation log need the dumps of {DUMPS_URL}: {error}"
        ) from error


class _Dump:
    """Reader of a packed dump that comes in pieces; it keeps the creations of a month."""

    def __init__(self, url: str, month: Month) -> None:
        self._url = url
        self._month = month
        self._unpacker: bz2.BZ2Decompressor | None = None  # None between two bzip2 streams
        self._rest = b""  # beginning of a line
        self._num_packed = self._num_unpacked = self._num_events = self._num_creations = 0
        self._kept: list[DumpedCreation] = []

    def feed(self, packed: bytes) -> None:
        """Read the next bytes of the file."""
        self._num_packed += len(packed)
        while packed:
            self._unpacker = self._unpacker or bz2.BZ2Decompressor()
            try:
                self._split(self._unpacker.decompress(packed, _BLOCK))
                while not (self._unpacker.needs_input or self._unpacker.eof):
                    self._split(self._unpacker.decompress(b"", _BLOCK))
            except (OSError, EOFError) as error:
                raise self._damaged(str(error)) from error
            packed = self._unpacker.unused_data
            self._unpacker = None if self._unpacker.eof else self._unpacker

    def finish(self) -> list[DumpedCreation]:
        """Return the creations; raise SourceChanged if the file is cut off or has none."""
        if self._unpacker or not self._num_packed:
            raise self._damaged("the stream ends early")
        if self._rest:
            self._read(self._rest)
        if not self._num_creations:
            raise self._damaged(
                f"none of {self._num_events} events is the creation of a page (page, create)"
            )
        return self._kept

    def _split(self, text: bytes) -> None:
        """Read each complete line of unpacked bytes; keep the beginning of the next line."""
        self._num_unpacked += len(text)
        if self._num_unpacked > MAX_UNPACKED_BYTES:
            raise SourceUnavailable(f"{self._url} unpacks to over {MAX_UNPACKED_BYTES} bytes")
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            self._read(line)
        if len(self._rest) > MAX_LINE_BYTES:
            raise self._damaged(f"a line of more than {MAX_LINE_BYTES} bytes")

    def _read(self, line: bytes) -> None:
        """Read a line; keep the creation of an article of the month, or without a time."""
        self._num_events += 1
        num_columns = line.count(b"\t") + 1
        layout = _LAYOUTS.get(num_columns)
        if layout is None:
            raise self._damaged(
                f"lines of {' or '.join(map(str, _LAYOUTS))} columns expected, got {num_columns}: "
                f"{line[:200]!r}"
            )
        # A month has some ten million lines, nearly all of revisions: split their beginning only.
        entity, kind = line.split(b"\t", layout.entity + 2)[layout.entity : layout.entity + 2]
        if entity not in _ENTITIES:
            raise self._damaged(
                f"page, revision or user expected in column {layout.entity + 1} of {num_columns}, "
                f"got {entity[:50]!r}: {line[:200]!r}"
            )
        if entity != b"page" or kind not in _CREATIONS:
            return
        self._num_creations += 1
        try:
            creation = _read_creation(line.decode("utf-8", errors="replace").split("\t"), layout)
        except ValueError as error:
            raise self._damaged(f"{error} in {line[:200]!r}") from error
        if creation and (creation.created_at is None or creation.created_at in self._month):
            self._kept.append(creation)

    def _damaged(self, what: str) -> SourceChanged:
        return SourceChanged(
            f"{self._url}: expected tab-separated events, packed by bzip2; {what}; "
            "see whether the dump's format changed"
        )


def _read_creation(columns: list[str], layout: _Layout) -> DumpedCreation | None:
    """Return the creation of an article, None for another namespace; ValueError if malformed."""
    page_id_at = layout.page_id
    stamp = columns[layout.entity + 2]
    namespace = columns[page_id_at + _NAMESPACE]
    is_deleted = columns[page_id_at + _IS_DELETED]
    if is_deleted not in _FLAGS or not re.fullmatch(r"(-?[0-9]{1,9})?", namespace):
        raise ValueError(f"namespace {namespace[:50]!r} and page_is_deleted {is_deleted[:50]!r}")
    if namespace != "0":
        return None
    moment = dt.datetime.fromisoformat(stamp) if stamp else None
    if moment and moment.tzinfo:
        raise ValueError(f"a time zone: {stamp[:50]!r}")
    if len(columns[page_id_at]) > _MAX_DIGITS:
        raise ValueError(f"a page id of {len(columns[page_id_at])} digits")
    title = _ESCAPED.sub(lambda match: _UNESCAPED[match[1]], columns[page_id_at + _TITLE])
    return DumpedCreation(
        page_id=int(columns[page_id_at] or 0) or None,
        title=title.replace("_", " "),
        created_at=moment and moment.replace(tzinfo=dt.UTC),
        is_deleted=is_deleted == "true",
    )
