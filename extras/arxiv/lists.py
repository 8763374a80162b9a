"""arXiv's two interfaces for lists of papers: OAI-PMH (arXivRaw) and the query API (Atom).

OAI-PMH lists papers by the UTC day of their last change, with the dates of all versions. So the
papers of a month are in the lists of changes of that month and of every later month. The query API
selects papers by the date of their first version. But it states no licences, and in 2026 it often
refused requests for want of capacity (status 429). It also returns empty pages by mistake; the
fetcher then requests them again. See https://info.arxiv.org/help/oa/index.html and
https://info.arxiv.org/help/api/user-manual.html.
"""

from __future__ import annotations

import datetime as dt
import fnmatch
import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from defusedxml import ElementTree
from pylatexenc.latex2text import LatexNodes2Text

from core.errors import SourceChanged, SourceError, SourceUnavailable
from core.month import Month, Period
from crawlers.contract import Drop, DropReason
from crawlers.web.fetcher import Fetched, Fetcher, get_list, read_time

PAGE_SIZE = 500  # papers per page of the query API
MAX_PAPERS = 30_000  # maximum papers per query; arXiv receives fewer papers in a month
MAX_PAGES = 2_000  # maximum pages per list of OAI-PMH; all of arXiv has about 1,200 (2026)
MAX_RESTARTS = 3  # a list that breaks off is read again this many times
# Papers that change leave their list, which shifts the papers after them. So all pages of a list
# must be of about the same time. This matters if an interrupted crawl is resumed days later.
MAX_LIST_AGE = dt.timedelta(hours=12)
_NAMESPACES = {
    "atom": "http://www.w3.org/2005/Atom",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
    "arxiv": "http://arxiv.org/schemas/atom",
    "oai": "http://www.openarchives.org/OAI/2.0/",
    "raw": "http://arxiv.org/OAI/arXivRaw/",
}
_ID = re.compile(r"[0-9]{4}\.[0-9]{4,5}|[a-z-]+(?:\.[A-Z]{2})?/[0-9]{7}")
_ADDRESS = re.compile(rf"https?://arxiv\.org/abs/({_ID.pattern})v([0-9]+)")
_DATE = re.compile(
    r"[A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} [12][0-9]{3} [0-9:]{8} (GMT|[+-][0-9]{4})"
)
_TOTAL = re.compile(r"[0-9]{1,9}")
_ERROR_TITLE = "Error"  # the query API reports errors as an entry with this title (status 200)
# Words in error messages about wrong queries (API manual, 3.4). Other errors may be temporary.
_OUR_FAULT = re.compile(r"incorrect|malformed|must be", re.IGNORECASE)
_WITHDRAWN = re.compile(r"\A\s*withdrawn|\b(?:been|is|was) withdrawn\b", re.IGNORECASE)
_WITHDRAWN_FLAG = "I"  # in the source type of a version, in arXivRaw
_RAW = "oai:metadata/raw:arXivRaw"
# arXivRaw has accents as LaTeX: ``Poincar\'e``, ``{\"O}``, ``\o``.
_ACCENT = re.compile(
    r"""\\(?:["'`^~=.] ?(?:\{\\?[A-Za-z]\}|\\?[A-Za-z])|[uvHcdbkr] ?\{\\?[A-Za-z]\}"""
    r"""|(?:aa|AA|ae|AE|oe|OE|ss|[oOlLij])(?![A-Za-z])(?:\{\})?)"""
)
_BRACED = re.compile(r"\{([^\x00-\x7f])\}")
_AFFILIATION = re.compile(r"\([^()]*\)")
_BETWEEN_NAMES = re.compile(r" ?(?:[,;]|\band\b) ?")


@dataclass(frozen=True)
class Entry:
    """A paper in a list."""

    id: str  # arXiv id without version, such as ``2401.00001`` or ``math.GT/0309136``
    published: dt.datetime  # submission of version 1, UTC
    title: str
    authors: tuple[str, ...]
    category: str | None  # primary category
    categories: tuple[str, ...]  # all categories, including the primary category
    is_revised: bool = False  # the paper has versions after version 1
    is_withdrawn: bool = False  # the authors' comment or the last version's type says so
    licence: str | None = None  # URL of the current version's licence; None if unknown


class Listing(NamedTuple):
    """The papers of a month, and why OAI-PMH failed; None if it did not."""

    papers: list[Entry | Drop]
    failure: str | None  # if this is set, the papers are from the query API, without licences


def list_month(month: Period, categories: Sequence[str], fetcher: Fetcher) -> Listing:
    """Return the papers of a month from OAI-PMH; if it fails, from the query API; oldest first.

    A category ``q-fin.*`` stands for all of the archive.
    A paper that moved in a list during the crawl is returned twice. The query API may include
    papers of the first minute of the next month.

    Raises:
        AccessRefused: robots.txt or the site forbids the lists; the other interface is not tried.
        SourceChanged: both interfaces returned responses of unknown form.
        SourceUnavailable: both failed, at least one of them temporarily.
    """
    try:
        return Listing(list_changed(month, categories, fetcher), None)
    except (SourceUnavailable, SourceChanged) as error:
        fetcher.forget(last_only=True)  # the response may be an error with status 200
        failure = error
    try:
        return Listing(find_papers(month, categories, fetcher), str(failure))
    except SourceError as error:
        is_change = isinstance(failure, SourceChanged) and isinstance(error, SourceChanged)
        kind = SourceChanged if is_change else SourceUnavailable
        raise kind(f"arXiv: no list of {month}: OAI-PMH: {failure}; query API: {error}") from error


def list_changed(month: Period, categories: Sequence[str], fetcher: Fetcher) -> list[Entry | Drop]:
    """Return all papers of some categories whose version 1 is of a month, from OAI-PMH.

    The lists of changes of the month and of all later months are read, up to the month of the
    server's clock. The cache keeps the lists of ended months for crawls of other months. So
    back-filling many months reads each list once.
    """
    wanted = re.compile("|".join(map(fnmatch.translate, categories)))
    found: list[Entry | Drop] = []
    changed = Month.of(month.start)
    newest = Month.last_complete() + 1
    is_last = False
    while not is_last:
        pages = _list_changes(changed, fetcher)
        is_last = pages[0].responded_at < changed.end or changed >= newest
        listed = [paper for page in pages for paper in page.papers]
        _require_some_readable(listed)
        if pages[0].responded_at < month.end or not (listed or is_last):
            raise SourceUnavailable(
                f"arXiv: OAI-PMH: expected papers that changed in {changed}, got {len(listed)} "
                f"at the server's time {pages[0].responded_at}"
            )
        found += [paper for paper in listed if _is_wanted(paper, month, wanted)]
        changed += 1
    return sorted(found, key=_by_date)


def _is_wanted(paper: Entry | Drop, month: Period, wanted: re.Pattern[str]) -> bool:
    if isinstance(paper, Drop):
        return True
    return paper.published in month and any(map(wanted.match, paper.categories))


class _Page(NamedTuple):
    """A page of a list of OAI-PMH."""

    papers: list[Entry | Drop]
    token: str  # resumption token of the next page; empty on the last page
    error: str | None  # noRecordsMatch or badResumptionToken; then there are no papers
    responded_at: dt.datetime  # by the server's clock
    retrieved_at: dt.datetime


def _list_changes(changed: Month, fetcher: Fetcher) -> list[_Page]:
    """Return the pages of all papers whose last change was in a month."""
    not_before = changed.end
    for _ in range(MAX_RESTARTS + 1):
        pages = _read_pages(changed, fetcher, not_before)
        if _is_whole(pages):
            return pages
        not_before = dt.datetime.now(dt.UTC)
    raise SourceUnavailable(
        f"arXiv: OAI-PMH: the list of changes in {changed} broke off {MAX_RESTARTS + 1} times; "
        "run the same command again later"
    )


def _is_whole(pages: Sequence[_Page]) -> bool:
    """Return False if the list broke off, or if its pages are of different times."""
    first = pages[0]
    last = pages[-1]
    is_ended = last.error is None or (len(pages) == 1 and last.error == "noRecordsMatch")
    return is_ended and all(page.retrieved_at - first.retrieved_at < MAX_LIST_AGE for page in pages)


def _read_pages(changed: Month, fetcher: Fetcher, not_before: dt.datetime) -> list[_Page]:
    """Return all pages of OAI-PMH's list of papers that changed in a month."""
    params = {"verb": "ListRecords", "metadataPrefix": "arXivRaw", "from": str(changed.first_day)}
    if changed <= Month.last_complete():  # OAI-PMH refuses days in the future
        params["until"] = str((changed + 1).first_day - dt.timedelta(days=1))
    pages: list[_Page] = []
    while len(pages) < MAX_PAGES:
        response = get_list(
            fetcher, "arxiv_oai", "/oai", params, lambda _: False, not_before=not_before
        )
        page = _read_page(response)
        is_again = page.token in {each.token for each in pages}
        pages.append(page)
        if not page.token:
            return pages
        if is_again:
            break
        params = {"verb": "ListRecords", "resumptionToken": page.token}
    raise SourceChanged(
        f"arXiv: OAI-PMH: expected the end of the list of changes in {changed}, got "
        f"{len(pages)} pages and the token {pages[-1].token[:100]!r}"
    )


def _read_page(fetched: Fetched) -> _Page:
    """Parse a page of OAI-PMH; raise an error unless it has records or says there are none."""
    root = _parse(fetched)
    responded_at = read_time(root.findtext("oai:responseDate", "", _NAMESPACES).strip())
    error, found = (root.find(f"oai:{name}", _NAMESPACES) for name in ("error", "ListRecords"))
    code = None if error is None else error.get("code")
    if code not in {None, "noRecordsMatch", "badResumptionToken"}:
        raise SourceChanged(f"arXiv: OAI-PMH refuses: {code}: {(error.text or '')[:200]}")
    nodes = [] if found is None else found.findall("oai:record", _NAMESPACES)
    if responded_at is None or (code is None and not nodes):
        raise SourceChanged(
            f"arXiv: {fetched.url}: expected a date and a list of records, got {root.tag[:100]!r} "
            f"with the date {responded_at} and {len(nodes)} records"
        )
    papers = [_read_record(node) for node in nodes]
    token = root.findtext("oai:ListRecords/oai:resumptionToken", "", _NAMESPACES).strip()
    return _Page(papers, token, code, responded_at, fetched.retrieved_at)


def _read_record(record: Any) -> Entry | Drop:
    """Return the paper of a record of OAI-PMH, or why it is left out."""
    header = record.find("oai:header", _NAMESPACES)
    raw = record.find(_RAW, _NAMESPACES)
    identifier = record.findtext("oai:header/oai:identifier", "", _NAMESPACES).strip()
    name = identifier.removeprefix("oai:arXiv.org:")
    if header is not None and header.get("status") == "deleted":
        return _drop(name, "deleted", "says the header of the record")
    if raw is None:
        return _drop(name, "parse_error", "expected a record with arXivRaw metadata")
    versions = raw.findall("raw:version", _NAMESPACES)
    dates = {node.get("version"): _of_raw(node, "date") for node in versions}
    paper = _of_raw(raw, "id")
    published = _read_date(dates.get("v1", ""))
    categories = tuple(_of_raw(raw, "categories").split())
    if _ID.fullmatch(paper) is None or published is None or not categories:
        given = f"{paper!r:.100}, {dates.get('v1')!r:.100} and {len(categories)} categories"
        detail = f"expected an id, a date of version 1 and categories, got {given}"
        return _drop(name, "parse_error", detail)
    is_withdrawn = _WITHDRAWN_FLAG in _of_raw(versions[-1], "source_type")
    return Entry(
        id=paper,
        published=published,
        title=_plain(_of_raw(raw, "title")),
        authors=_split_authors(_of_raw(raw, "authors")),
        category=categories[0],
        categories=categories,
        is_revised=len(dates) > 1,
        is_withdrawn=is_withdrawn or _says_withdrawn(_of_raw(raw, "comments")),
        licence=_of_raw(raw, "license") or None,
    )


def _of_raw(node: Any, tag: str) -> str:
    return str(node.findtext(f"raw:{tag}", "", _NAMESPACES)).strip()


def _says_withdrawn(comment: str) -> bool:
    return _WITHDRAWN.search(comment) is not None


def _drop(name: str, reason: DropReason, detail: str) -> Drop:
    return Drop(name[:40] or "no id", reason, detail)


def _read_date(text: str) -> dt.datetime | None:
    """Parse the date of a version, such as ``Mon, 1 Jan 2024 10:00:00 GMT``."""
    return read_time(text) if _DATE.fullmatch(text) else None


def _plain(text: str) -> str:
    """Return a text on one line with accented letters instead of LaTeX's accents."""
    text = " ".join(text.split())
    if "\\" in text:
        text = _ACCENT.sub(lambda match: _letter(match[0]), text)
        text = _BRACED.sub(r"\1", unicodedata.normalize("NFC", text))
    return text


@functools.lru_cache(maxsize=4096)  # a page has thousands of accents, of some hundred kinds
def _letter(latex: str) -> str:
    return str(LatexNodes2Text().latex_to_text(latex))


def _split_authors(text: str) -> tuple[str, ...]:
    """Return the names in a line of authors, without affiliations (in parentheses)."""
    text = _plain(text)
    for _ in range(3):  # affiliations may contain parentheses
        text = _AFFILIATION.sub("", text)
    return tuple(name.strip() for name in _BETWEEN_NAMES.split(text) if name.strip())


def find_papers(month: Period, categories: Sequence[str], fetcher: Fetcher) -> list[Entry | Drop]:
    """Return all papers of some categories that were submitted in a month, from the query API.

    The API's time window has whole minutes and includes both ends. So papers of the first minute of
    the next month may be included. Papers that move to another page meanwhile are returned twice.
    """
    wanted = " OR ".join(f"cat:{name}" for name in categories)
    window = f"[{month.start:%Y%m%d%H%M} TO {month.end:%Y%m%d%H%M}]"
    params: dict[str, str | int] = {
        "search_query": f"({wanted}) AND submittedDate:{window}",
        "sortBy": "submittedDate",
        "sortOrder": "ascending",
        "max_results": PAGE_SIZE,
    }
    found: list[Entry | Drop] = []
    total = 1
    while len(found) < total:
        start = len(found)
        page = {**params, "start": start}
        feed = _parse(
            get_list(fetcher, "arxiv", "/api/query", page, functools.partial(is_anomalous, start))
        )
        entries = [_read_entry(node) for node in feed.findall("atom:entry", _NAMESPACES)]
        _require_some_readable(entries)
        found += entries
        total = _total(feed)
        if total > MAX_PAPERS:
            raise SourceChanged(f"arXiv: expected at most {MAX_PAPERS} papers, got {total}")
    return sorted(found, key=_by_date)


def _require_some_readable(papers: Sequence[Entry | Drop]) -> None:
    bad = [each for each in papers if isinstance(each, Drop) and each.reason == "parse_error"]
    if bad and len(bad) == len(papers):
        raise SourceChanged(f"arXiv: not one entry of a list is a paper: {bad[0].detail}")


def _by_date(paper: Entry | Drop) -> tuple[dt.datetime, str]:
    if isinstance(paper, Drop):
        return dt.datetime.min.replace(tzinfo=dt.UTC), paper.native_id
    return paper.published, paper.id


def is_anomalous(start: int, page: Fetched) -> bool:
    """Return True if a page from result ``start`` on is wrongly empty, or a temporary error."""
    feed = _parse(page)
    entry = feed.find("atom:entry", _NAMESPACES)
    if entry is None:
        return start < _total(feed)
    return _is_error(entry) and not _OUR_FAULT.search(_text(entry, "summary"))


def _parse(page: Fetched) -> Any:
    """Parse a response as XML."""
    try:
        return ElementTree.fromstring(page.body)
    # Unknown encodings raise LookupError; encodings of several bytes, and entities, ValueError.
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise SourceChanged(f"arXiv: {page.url}: expected XML, got {error}") from error


def _total(feed: Any) -> int:
    """Return the number of all papers that a feed of the query API states."""
    text = feed.findtext("opensearch:totalResults", "", _NAMESPACES).strip()
    if not _TOTAL.fullmatch(text):
        given = f"{feed.tag[:100]} with {text[:100]!r}"
        raise SourceChanged(f"arXiv: expected a feed with a total, got {given}")
    return int(text)


def _text(node: Any, tag: str) -> str:
    return " ".join(node.findtext(f"atom:{tag}", "", _NAMESPACES).split())


def _is_error(node: Any) -> bool:
    return _text(node, "title") == _ERROR_TITLE and "/api/errors" in _text(node, "id")


def _read_entry(node: Any) -> Entry | Drop:
    """Return the paper of an entry of the query API, or why it is left out."""
    address = _text(node, "id")
    title = _text(node, "title")
    if _is_error(node):
        raise SourceChanged(f"arXiv: the query API refuses: {_text(node, 'summary')[:200]!r}")
    match = _ADDRESS.fullmatch(address)
    published = read_time(_text(node, "published"))
    if match is None or published is None:
        what = f"expected an entry with an address and a date, got {address!r:.100}"
        detail = f"{what}, titled {title!r:.100}: {_text(node, 'summary'):.200}"
        return _drop(match[1] if match else address, "parse_error", detail)
    primary = node.find("arxiv:primary_category", _NAMESPACES)
    return Entry(
        id=match[1],
        published=published,
        title=title,
        authors=tuple(a.text or "" for a in node.findall("atom:author/atom:name", _NAMESPACES)),
        category=None if primary is None else primary.get("term"),
        categories=tuple(c.get("term", "") for c in node.findall("atom:category", _NAMESPACES)),
        is_revised=match[2] != "1",
        is_withdrawn=_says_withdrawn(node.findtext("arxiv:comment", "", _NAMESPACES)),
    )
