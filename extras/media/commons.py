"""Files of Wikimedia Commons by month of upload: lists, licences, downloads and pieces.

``list=allimages`` sorted by time lists the current versions of files. A file belongs to the month
in which this version was uploaded. A file with a version of an earlier month is dropped, and a file
that is replaced later is in no month. The upload says nothing about the age of
what is shown: an old photograph may be scanned today (``extra.made`` has the date that the page
gives). A sample reads the list from seeded instants on, and not the whole month (about a million
files). ``aimime`` cannot be used, since Commons runs in miser mode.

Media are on upload.wikimedia.org. Its rules (https://wikitech.wikimedia.org/wiki/Robot_policy): at
most two connections and 25 Mbit/s, measured over 10 s. One request in ``INTERVAL_S`` for at most
``MAX_FILE_BYTES`` stays below. The API has the SHA-1 of each file: other bytes are requested again.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from core.errors import ItemFailed, ItemUnavailable, SourceUnavailable
from core.month import Month
from core.storage.store import explain_disk_errors
from crawlers.apis import mediawiki
from crawlers.apis.fields import Fields, show
from crawlers.apis.mediawiki import Edition, MediaWiki
from crawlers.contract import CrawlContext, Drop, DropReason, Item, Medium, Repeat, missing_item
from crawlers.pieces import HEAD_BYTES, MediaKind, Piece, is_flat, kind_of
from crawlers.web.fetcher import Fetched

SITE = "commons"
FILES = "commons_files"
SITES = {SITE: "https://commons.wikimedia.org", FILES: "https://upload.wikimedia.org"}
INTERVAL_S = 4.0
MAX_FILE_BYTES = 12_000_000  # 24 Mbit/s at one request in 4 s
MAX_PIECES = 4  # of one file that are kept; more would resemble each other
# Instants from which a sample reads the list, one request each. Many, as files come in series.
NUM_WINDOWS = 60
LIST_ROWS = 500  # maximum rows per request, for clients without bot rights
TITLES = 10  # per request; 50 titles of other alphabets would make too long a URL

_SECOND = dt.timedelta(seconds=1)
_ADDRESS = re.compile(r"https://upload\.wikimedia\.org(/[^?#]*)(?:\?.*)?")
_PATH = re.compile(r"/wikipedia/commons/[0-9a-f]/[0-9a-f]{2}/[^/]{1,255}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_CC_BY = re.compile(r"CC BY(-SA)? ([1-4]\.\d)(?: ([a-z]{2,4}))?")
_FREE = {
    "cc0": "CC0-1.0",
    "public domain": "LicenseRef-public-domain",
    "no restrictions": "LicenseRef-public-domain",
}
_MAX_SIDE = 10**6
_MAX_TITLE = 255 + len("File:")  # bytes; titles of other alphabets have fewer characters


@dataclass(frozen=True)
class File:
    """A row of the list: the current version of a file."""

    title: str  # with ``File:`` and spaces
    path: str  # on upload.wikimedia.org
    uploaded: dt.datetime
    mime: str
    num_bytes: int
    sha1: str
    width: int  # 0 for sound
    height: int
    duration_s: float | None  # of sound and films


@dataclass(frozen=True)
class Choice:
    """Rules of a source: the files that it takes, and how they are cut."""

    kind: MediaKind
    window_rows: int  # files of the list that a sample reads from each of its instants on
    takes: Callable[[File], bool]  # False for files of another kind, which are not counted
    refuses: Callable[[File], tuple[DropReason, str] | None]  # reason to drop before the download
    # Pieces of a file on disk, in the order of the given rank of their indices; it raises
    # ItemUnavailable for damaged files
    cut: Callable[[Path, Callable[[int], bytes]], Iterable[Piece]]


def fetch_files(month: Month, context: CrawlContext, choice: Choice) -> Iterator[Item]:
    """Yield the pieces of each chosen file of a month; samples are in random order."""
    wiki = MediaWiki(context.fetcher, Edition(site=SITE, project="commons"))
    listing = _list_files(wiki, month, context, choice)
    yield from listing.others
    files = listing.files
    if context.is_sampled:
        files.sort(key=lambda file: context.rank(file.title))
    reader = _Reader(context, month, choice, _Pages(wiki, files))
    yield from context.sample(files, lambda file: file.title, reader.read)
    if listing.failure:
        raise listing.failure


@dataclass
class _Listing:
    files: list[File] = field(default_factory=list)
    others: list[Drop | Repeat] = field(default_factory=list)
    failure: SourceUnavailable | None = None  # error that ended the list early


def _list_files(wiki: MediaWiki, month: Month, context: CrawlContext, choice: Choice) -> _Listing:
    """Return the files of a month that the choice takes, and why others are left out."""
    found = _Listing()
    seen = set[str]()
    try:
        for file in itertools.chain.from_iterable(_read_windows(wiki, month, context, choice)):
            if isinstance(file, Drop):
                found.others.append(file)
            elif file.title in seen:
                found.others.append(Repeat(file.title, "listed again"))
            elif choice.takes(file):
                seen.add(file.title)
                found.files.append(file)
    except SourceUnavailable as error:
        if not found.files:
            raise
        found.failure = error
    return found


def _read_windows(
    wiki: MediaWiki, month: Month, context: CrawlContext, choice: Choice
) -> Iterator[list[File | Drop]]:
    """Yield rows of the month's uploads; a sample begins at random moments of the month."""
    starts = [month.start]
    if context.is_sampled:
        drawn = [context.rank(f"window/{number}") for number in range(NUM_WINDOWS)]
        shares = [int.from_bytes(each[:8]) / 2**64 for each in drawn]
        starts = sorted({month.start + _whole((month.end - month.start) * n) for n in shares})
    for start, end in itertools.pairwise([*starts, month.end]):
        limit = choice.window_rows if context.is_sampled else LIST_ROWS
        for rows in _list_rows(wiki, start, end - _SECOND, limit):
            yield rows
            if rows and context.is_sampled:
                break


def _whole(span: dt.timedelta) -> dt.timedelta:
    return span - span % _SECOND


def _list_rows(
    wiki: MediaWiki, start: dt.datetime, last: dt.datetime, limit: int
) -> Iterator[list[File | Drop]]:
    """Yield the rows of uploads between two moments, a page at a time."""
    pieces = wiki.query(
        list="allimages",
        aisort="timestamp",
        aidir="newer",
        aistart=mediawiki.stamp(start),
        aiend=mediawiki.stamp(last),
        ailimit=limit,
        aiprop="timestamp|url|size|sha1|mime",
    )
    for piece, _ in pieces:
        rows = mediawiki.list_rows(piece, "allimages")
        yield [_read_row(Fields("commons: allimages", row)) for row in rows]


def _read_row(row: Fields) -> File | Drop:
    """Return the file in a row of the list, or why it is left out."""
    title = row.text("title")
    uploaded = row.time("timestamp", dt.UTC)
    if title is not None and len(title) > _MAX_TITLE:
        return Drop(title[:_MAX_TITLE], "parse_error", "the title is too long")
    if title is not None and row.values.get("filehidden"):
        return Drop(title, "suppressed", "the file was removed from public view")
    found = _ADDRESS.fullmatch(row.text("url") or "")
    path = unquote(found[1]) if found else ""
    mime = row.text("mime")
    sha1 = row.text("sha1") or ""
    num_bytes = row.integer("size")
    is_known = _PATH.fullmatch(path) and _SHA1.fullmatch(sha1)
    if not (title and title.startswith("File:") and uploaded and mime and num_bytes and is_known):
        return Drop(title or f"row of {uploaded}", "parse_error", show(row.values))
    return File(
        title=title,
        path=quote(path),
        uploaded=uploaded,
        mime=mime,
        num_bytes=num_bytes,
        sha1=sha1,
        width=row.integer("width", 0, _MAX_SIDE) or 0,
        height=row.integer("height", 0, _MAX_SIDE) or 0,
        duration_s=row.number("duration"),
    )


class _Pages:
    """Descriptions of files, requested for several files at a time, in the order of ``files``."""

    def __init__(self, wiki: MediaWiki, files: Sequence[File]) -> None:
        self._wiki = wiki
        self._batches = {
            file.title: batch for batch in mediawiki.batches(files, TITLES) for file in batch
        }
        self._known: dict[str, Fields | ItemFailed] = {}

    def find(self, file: File) -> Fields | None:
        """Return the file's page; None if it is gone. Raise ItemFailed if the request failed."""
        if file.title not in self._known:
            self._ask([each.title for each in self._batches[file.title]])
        page = self._known[file.title]
        if isinstance(page, ItemFailed):
            raise page
        return page if page.rows("imageinfo") else None

    def _ask(self, titles: list[str]) -> None:
        """Ask for facts of several titles at once; keep the error for each if it fails."""
        self._known |= {title: Fields(title) for title in titles}
        try:
            pages = self._wiki.pages(
                prop="imageinfo",
                titles=mediawiki.join(titles),
                iiprop="timestamp|sha1|extmetadata",
                iilimit=2,  # the current version, and the one before it
                iiextmetadatafilter="LicenseShortName|DateTimeOriginal",
            )
        except ItemFailed as error:
            self._known |= dict.fromkeys(titles, error)
            return
        self._known |= {str(page.get("title")): Fields.of("imageinfo", page) for page in pages}


@dataclass(frozen=True)
class _Reader:
    context: CrawlContext
    month: Month
    choice: Choice
    pages: _Pages

    def read(self, file: File) -> Iterator[Item]:
        """Yield the pieces of a file, or why there is none."""
        if file.num_bytes > MAX_FILE_BYTES:
            yield Drop(file.title, "too_large", f"{file.num_bytes} bytes")
            return
        refusal = self.choice.refuses(file)
        if refusal:
            yield Drop(file.title, *refusal)
            return
        try:
            page = self.pages.find(file)
            licence = self._judge(file, page)
            fetched = self.context.fetcher.get(
                FILES, file.path, max_bytes=MAX_FILE_BYTES, is_busy=_has_other_bytes(file)
            )
            yield from self._cut(file, fetched, licence, _read_made(page))
        except (ItemUnavailable, ItemFailed) as error:
            yield missing_item(file.title, error)

    def _judge(self, file: File, page: Fields | None) -> str:
        """Return the licence of a file; raise ItemUnavailable with the reason to drop it."""
        versions = (page.rows("imageinfo") if page else None) or []
        if not versions:
            raise ItemUnavailable("deleted", "the file is gone")
        if versions[0].text("sha1") != file.sha1:
            raise ItemUnavailable("edited_later", "another version was uploaded meanwhile")
        earlier = [each.time("timestamp", dt.UTC) for each in versions[1:]]
        old = [each for each in earlier if each is None or each < self.month.start]
        if old:
            raise ItemUnavailable("outside_month", f"a new version of a file of {old[0]}")
        given = versions[0].inner("extmetadata").inner("LicenseShortName").text("value")
        licence = read_licence(given or "")
        if licence is None:
            raise ItemUnavailable("licence", show(given))
        return licence

    def _cut(self, file: File, fetched: Fetched, licence: str, made: str | None) -> Iterator[Item]:
        """Yield at most ``MAX_PIECES`` pieces of a file that are not flat."""
        num_kept = 0
        if kind_of(fetched.body[:HEAD_BYTES]) != self.choice.kind:
            raise ItemUnavailable("unknown_format", f"begins like no {self.choice.kind}")
        with (
            explain_disk_errors(tempfile.gettempdir()),
            tempfile.NamedTemporaryFile(prefix="tidemark-media-") as copy,
        ):
            copy.write(fetched.body)
            copy.flush()
            pieces = self.choice.cut(
                Path(copy.name), lambda index: self.context.rank(f"{file.title}#{index}")
            )
            for piece in pieces:
                name = f"{file.title}#{piece.index}"
                if is_flat(self.choice.kind, piece.data):
                    yield Drop(name, "low_quality", "no variation: a plain area, or silence")
                    continue
                yield self._medium(file, fetched, piece, licence, made)
                num_kept += 1
                if num_kept == MAX_PIECES:
                    return

    def _medium(
        self, file: File, fetched: Fetched, piece: Piece, licence: str, made: str | None
    ) -> Medium:
        """Return a piece of a file with its author, licence and date."""
        url = f"{SITES[SITE]}/wiki/{quote(file.title.replace(' ', '_'), safe='/:()')}"
        return Medium(
            native_id=f"{file.title}#{piece.index}",
            version_id=file.sha1,
            cluster_id=file.title,
            title=file.title.removeprefix("File:"),
            url=url,
            event_time=file.uploaded,
            date_kind="created",
            text_as_of=file.uploaded,
            retrieved_at=fetched.retrieved_at,
            licence=licence,
            attribution=f"the author named at {url}, by Wikimedia Commons",
            extra={**piece.place, **({"made": made} if made else {})},
            kind=self.choice.kind,
            data=piece.data,
        )


def _has_other_bytes(file: File) -> Callable[[Fetched], bool]:
    def differs(fetched: Fetched) -> bool:
        return hashlib.sha1(fetched.body, usedforsecurity=False).hexdigest() != file.sha1

    return differs


def read_licence(name: str) -> str | None:
    """Return the SPDX id of ``LicenseShortName``; None for other than CC0, CC BY (SA), or none."""
    name = name.strip()
    found = _CC_BY.fullmatch(name)
    if found:
        version = f"{found[2]}-{found[3].upper()}" if found[3] else found[2]
        return f"CC-BY{found[1] or ''}-{version}"
    return _FREE.get(name.lower())


def _read_made(page: Fields | None) -> str | None:
    """Return the first date within the HTML of ``DateTimeOriginal``."""
    versions = (page.rows("imageinfo") if page else None) or []
    given = versions[0].inner("extmetadata").inner("DateTimeOriginal").text("value")
    found = re.search(r"\b[12]\d{3}(-\d\d(-\d\d)?)?\b", given or "")
    return found[0] if found else None
