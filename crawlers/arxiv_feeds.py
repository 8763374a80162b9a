"""arXiv's two interfaces for metadata: the query API (Atom) and OAI-PMH (arXivRaw).

The query API chooses papers by the date of their first version, but knows no licences; OAI-PMH
knows licences, but selects by the date of the last change. The query API answers at times with a
valid page without entries (``is_anomalous``): the fetcher asks it again. Documents:
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
from crawlers.http import Fetched, Fetcher

PAGE_SIZE = 500
LIST_ABOVE = 20  # papers from which on a few pages of OAI's list beat one record each
_NAMESPACES = {
    "atom": "http://www.w3.org/2005/Atom",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
    "arxiv": "http://arxiv.org/schemas/atom",
    "oai": "http://www.openarchives.org/OAI/2.0/",
    "raw": "http://arxiv.org/OAI/arXivRaw/",
}
_ID = re.compile(r"https?://arxiv\.org/abs/(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})v\d+")
_TOTAL = re.compile(r"[0-9]{1,9}")
# A list that ends early is no harm: records that are missing are asked for one by one.
_HARMLESS_OAI_ERRORS = {"noRecordsMatch", "idDoesNotExist", "badResumptionToken"}


@dataclass(frozen=True)
class Entry:
    """A paper as the query API lists it.

    Attributes:
        id: without version, such as ``2401.00001`` or ``math.GT/0309136``.
        published: submission of version 1, UTC.
        category: the primary one.
        categories: all of them, the primary one included.
    """

    id: str
    published: dt.datetime
    title: str
    authors: tuple[str, ...]
    category: str | None
    categories: tuple[str, ...]


def find_papers(month: Month, categories: Sequence[str], fetcher: Fetcher) -> list[Entry]:
    """Page through the papers of some categories that were submitted in a month, oldest first.

    The API's window is in whole minutes and includes both ends, so papers of the first minute of
    the next month may be among them.

    Raises:
        SourceUnavailable: the API does not answer, or only with empty pages.
        SourceChanged: it reports an error, or a page is not as documented.
    """
    wanted = " OR ".join(f"cat:{name}" for name in categories)
    window = f"[{month.start:%Y%m%d%H%M} TO {month.end:%Y%m%d%H%M}]"
    params: dict[str, str | int] = {
        "search_query": f"({wanted}) AND submittedDate:{window}",
        "sortBy": "submittedDate",
        "sortOrder": "ascending",
        "max_results": PAGE_SIZE,
    }
    found: dict[str, Entry] = {}
    start, total = 0, 1
    while start < total:
        is_busy = partial(is_anomalous, start)
        feed = _get(fetcher, "arxiv", "/api/query", {**params, "start": start}, is_busy)
        entries = [_read_entry(node) for node in feed.findall("atom:entry", _NAMESPACES)]
        found |= {entry.id: entry for entry in entries}
        start, total = start + len(entries), _total(feed)
    return sorted(found.values(), key=lambda entry: (entry.published, entry.id))


def find_licences(
    ids: Sequence[str], month: Month, sets: Sequence[str], fetcher: Fetcher
) -> dict[str, str]:
    """Return the licence's URL of each paper that has one.

    For many papers the month's changes are listed first: that covers most of a recent month in a
    few requests. What is not among them is asked for record by record.

    Args:
        ids: arXiv ids without version.
        month: in which they were submitted.
        sets: OAI sets that they belong to.
        fetcher: of the source.

    Raises:
        SourceUnavailable: OAI-PMH does not answer.
        SourceChanged: it reports an error, or a page is not as documented.
    """
    found: dict[str, str | None] = {}
    if len(ids) > LIST_ABOVE:
        for name in sets:
            found |= _list_licences(month, name, fetcher)
    for paper in ids:
        if paper not in found:
            record = {"verb": "GetRecord", "identifier": f"oai:arXiv.org:{paper}"}
            answer = _get(fetcher, "arxiv_oai", "/oai", {**record, "metadataPrefix": "arXivRaw"})
            found |= _read_licences(answer)
    return {paper: licence for paper in ids if (licence := found.get(paper))}


def _list_licences(month: Month, set_name: str, fetcher: Fetcher) -> dict[str, str | None]:
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
        if not token or page.keys() <= found.keys():  # a page without news would go on for ever
            return found | page
        found |= page
        params = {"verb": "ListRecords", "resumptionToken": token}


def is_anomalous(start: int, page: Fetched) -> bool:
    """Whether a page of the query API is empty though its total says that there is more."""
    feed = _parse(page)
    return feed.find("atom:entry", _NAMESPACES) is None and start < _total(feed)


def _get(
    fetcher: Fetcher,
    key: str,
    path: str,
    params: Mapping[str, str | int],
    is_busy: Callable[[Fetched], bool] | None = None,
) -> Any:
    try:
        return _parse(fetcher.get(key, path, params, is_busy=is_busy))
    except ItemUnavailable as error:  # without this page there is no month
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


def _read_entry(node: Any) -> Entry:
    def text(tag: str) -> str:
        return " ".join(node.findtext(f"atom:{tag}", "", _NAMESPACES).split())

    match = _ID.fullmatch(text("id"))
    published = _instant(text("published"))
    if match is None or published is None:  # the API reports its errors as an entry, too
        raise SourceChanged(
            f"arXiv: expected an entry with an address and a date, got {text('id')!r}, "
            f"titled {text('title')!r}: {text('summary')[:200]}"
        )
    primary = node.find("arxiv:primary_category", _NAMESPACES)
    return Entry(
        id=match[1],
        published=published,
        title=text("title"),
        authors=tuple(a.text or "" for a in node.findall("atom:author/atom:name", _NAMESPACES)),
        category=None if primary is None else primary.get("term"),
        categories=tuple(c.get("term", "") for c in node.findall("atom:category", _NAMESPACES)),
    )


def _instant(text: str) -> dt.datetime | None:
    """Read an instant; None where it is none, or without its time zone could be any."""
    try:
        moment = dt.datetime.fromisoformat(text)
        return moment.astimezone(dt.UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _read_licences(answer: Any) -> dict[str, str | None]:
    error = answer.find("oai:error", _NAMESPACES)
    if error is not None and error.get("code") not in _HARMLESS_OAI_ERRORS:
        raise SourceChanged(f"arXiv: OAI-PMH refuses: {error.get('code')}: {error.text}")
    return {
        record.findtext("raw:id", "", _NAMESPACES): record.findtext(
            "raw:license", None, _NAMESPACES
        )
        for record in answer.iterfind(".//raw:arXivRaw", _NAMESPACES)
    }
