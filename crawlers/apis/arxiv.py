"""arXiv's two interfaces for metadata: the query API (Atom) and OAI-PMH (arXivRaw).

The query API selects papers by the date of their first version, but states no licences. OAI-PMH
states licences, but selects papers by the date of their last change. The query API sometimes
returns an empty page by mistake; the fetcher then requests it again. See
https://info.arxiv.org/help/api/user-manual.html and https://info.arxiv.org/help/oa/index.html.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from defusedxml import DefusedXmlException, ElementTree

from core.errors import AccessRefused, ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month
from crawlers.web.fetcher import Fetched, Fetcher, read_time

PAGE_SIZE = 500
MAX_PAPERS = 30_000  # maximum papers per query; arXiv receives fewer papers in a month
LIST_ABOVE = 20  # if more papers per category are wanted, their licences are read from lists
_NAMESPACES = {
    "atom": "http://www.w3.org/2005/Atom",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
    "arxiv": "http://arxiv.org/schemas/atom",
    "oai": "http://www.openarchives.org/OAI/2.0/",
    "raw": "http://arxiv.org/OAI/arXivRaw/",
}
_ID = re.compile(r"https?://arxiv\.org/abs/(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})v\d+")
_TOTAL = re.compile(r"[0-9]{1,9}")
_ERROR_TITLE = "Error"  # the query API reports errors as an entry with this title (status 200)
# Words in error messages about wrong queries (API manual, 3.4). Other errors may be temporary.
_OUR_FAULT = re.compile(r"incorrect|malformed|must be", re.IGNORECASE)
_WITHDRAWN = re.compile(r"\A\s*withdrawn|\b(?:been|is|was) withdrawn\b", re.IGNORECASE)
_PHYSICS = {
    "astro-ph", "cond-mat", "gr-qc", "hep-ex", "hep-lat", "hep-ph", "hep-th", "math-ph", "nlin",
    "nucl-ex", "nucl-th", "physics", "quant-ph",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A paper in a result list of the query API."""

    id: str  # arXiv id without version, such as ``2401.00001`` or ``math.GT/0309136``
    published: dt.datetime  # submission of version 1, UTC
    title: str
    authors: tuple[str, ...]
    category: str | None  # primary category
    categories: tuple[str, ...]  # all categories, including the primary category
    is_withdrawn: bool = False  # the authors' comment says that the paper was withdrawn


@dataclass(frozen=True)
class Unreadable:
    """A list entry that cannot be parsed; ``id`` is the paper's id or the beginning of its URL."""

    id: str
    detail: str


def find_papers(
    month: Month, categories: Sequence[str], fetcher: Fetcher
) -> list[Entry | Unreadable]:
    """Return all papers of some categories that were submitted in a month, oldest first.

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
    found: list[Entry | Unreadable] = []
    total = 1
    while len(found) < total:
        start = len(found)
        is_busy = partial(is_anomalous, start)
        feed = _get(fetcher, "arxiv", "/api/query", {**params, "start": start}, is_busy)
        entries = [_read_entry(node) for node in feed.findall("atom:entry", _NAMESPACES)]
        unreadable = [entry for entry in entries if isinstance(entry, Unreadable)]
        if unreadable and len(unreadable) == len(entries):
            raise SourceChanged(f"arXiv: not one entry is a paper: {unreadable[0].detail}")
        found += entries
        if (total := _total(feed)) > MAX_PAPERS:
            raise SourceChanged(f"arXiv: expected at most {MAX_PAPERS} papers, got {total}")
    return sorted(found, key=_by_date)


def _by_date(entry: Entry | Unreadable) -> tuple[dt.datetime, str]:
    if isinstance(entry, Unreadable):
        return dt.datetime.min.replace(tzinfo=dt.UTC), entry.id
    return entry.published, entry.id


class Licences:
    """The licences of papers, from OAI-PMH.

    For more than LIST_ABOVE papers per category, the constructor fetches lists of all papers
    changed in the month. Papers that are not in these lists are requested one by one.
    """

    def __init__(
        self, month: Month, categories: Sequence[str], fetcher: Fetcher, num_wanted: int
    ) -> None:
        self._fetcher = fetcher
        self._found: dict[str, str | None] = {}
        if num_wanted > LIST_ABOVE * len(categories):
            for name in categories:
                self._found |= _list_licences(month, set_of(name), fetcher)

    def of(self, paper: str) -> str | None:
        """Return a paper's licence URL, None if it has none; ``paper`` is an id without version.

        Raises:
            ItemFailed: the request for the paper's record failed.
            SourceUnavailable, SourceChanged: OAI-PMH failed, or its response has an unknown form.
        """
        if paper not in self._found:
            record = {"verb": "GetRecord", "identifier": f"oai:arXiv.org:{paper}"}
            params = {**record, "metadataPrefix": "arXivRaw"}
            answer = _get(self._fetcher, "arxiv_oai", "/oai", params)
            error = answer.find("oai:error", _NAMESPACES)
            if error is not None and error.get("code") != "idDoesNotExist":
                raise SourceChanged(f"arXiv: OAI-PMH refuses: {error.get('code')}: {error.text}")
            self._found |= _read_licences(answer)
        return self._found.get(paper)


def set_of(category: str) -> str:
    """Return a category's set in OAI-PMH, such as ``cs:cs:CL`` for the category cs.CL."""
    archive, _, subject = category.partition(".")
    group = "physics" if archive in _PHYSICS else archive
    return ":".join(filter(None, (group, archive, subject)))


def _list_licences(month: Month, set_name: str, fetcher: Fetcher) -> dict[str, str | None]:
    """Return the licence URLs, by paper id, of the papers whose last change was in a month."""
    found: dict[str, str | None] = {}
    params = {
        "verb": "ListRecords",
        "metadataPrefix": "arXivRaw",
        "set": set_name,
        "from": month.start.date().isoformat(),
        "until": month.end.date().isoformat(),
    }
    while True:
        answer = _get(fetcher, "arxiv_oai", "/oai", params)
        page = _read_licences(answer)
        token = answer.findtext("oai:ListRecords/oai:resumptionToken", "", _NAMESPACES).strip()
        if not token or page.keys() <= found.keys():  # stop if the page has no new paper
            return found | page
        found |= page
        params = {"verb": "ListRecords", "resumptionToken": token}


def is_anomalous(start: int, page: Fetched) -> bool:
    """Return True if a page from result ``start`` on is wrongly empty, or a temporary error."""
    feed = _parse(page)
    entry = feed.find("atom:entry", _NAMESPACES)
    if entry is None:
        return start < _total(feed)
    return _is_error(entry) and not _OUR_FAULT.search(_text(entry, "summary"))


def _get(
    fetcher: Fetcher,
    key: str,
    path: str,
    params: Mapping[str, str | int],
    is_busy: Callable[[Fetched], bool] | None = None,
) -> Any:
    try:
        return _parse(fetcher.get(key, path, params, is_busy=is_busy))
    except ItemUnavailable as error:  # without this page, the month cannot be crawled
        kind = AccessRefused if error.reason == "robots" else SourceUnavailable
        raise kind(f"arXiv: a list that the month needs cannot be had: {error}") from error


def _parse(page: Fetched) -> Any:
    try:
        return ElementTree.fromstring(page.body)
    except (ElementTree.ParseError, DefusedXmlException) as error:
        raise SourceChanged(f"arXiv: {page.url}: expected XML, got {error}") from error


def _total(feed: Any) -> int:
    text = feed.findtext("opensearch:totalResults", "", _NAMESPACES).strip()
    if not _TOTAL.fullmatch(text):
        raise SourceChanged(f"arXiv: expected a feed with a total, got {feed.tag} with {text!r}")
    return int(text)


def _text(node: Any, tag: str) -> str:
    return " ".join(node.findtext(f"atom:{tag}", "", _NAMESPACES).split())


def _is_error(node: Any) -> bool:
    return _text(node, "title") == _ERROR_TITLE and "/api/errors" in _text(node, "id")


def _read_entry(node: Any) -> Entry | Unreadable:
    address, title = _text(node, "id"), _text(node, "title")
    if _is_error(node):
        raise SourceChanged(f"arXiv: the query API refuses: {_text(node, 'summary')[:200]!r}")
    match, published = _ID.fullmatch(address), read_time(_text(node, "published"))
    if match is None or published is None:
        what = f"expected an entry with an address and a date, got {address!r:.100}"
        detail = f"{what}, titled {title!r:.100}: {_text(node, 'summary'):.200}"
        return Unreadable(match[1] if match else f"{address:.40}", detail)
    primary = node.find("arxiv:primary_category", _NAMESPACES)
    comment = node.findtext("arxiv:comment", "", _NAMESPACES)
    return Entry(
        id=match[1],
        published=published,
        title=title,
        authors=tuple(a.text or "" for a in node.findall("atom:author/atom:name", _NAMESPACES)),
        category=None if primary is None else primary.get("term"),
        categories=tuple(c.get("term", "") for c in node.findall("atom:category", _NAMESPACES)),
        is_withdrawn=_WITHDRAWN.search(comment) is not None,
    )


def _read_licences(answer: Any) -> dict[str, str | None]:
    return {
        record.findtext("raw:id", "", _NAMESPACES): record.findtext(
            "raw:license", None, _NAMESPACES
        )
        for record in answer.iterfind(".//raw:arXivRaw", _NAMESPACES)
    }
