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
MAX_PAPERS = 30_000  # of one query; all of arXiv has fewer in a month
LIST_ABOVE = 20  # papers a set from which on a few pages of OAI's list beat one record each
_NAMESPACES = {
    "atom": "http://www.w3.org/2005/Atom",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
    "arxiv": "http://arxiv.org/schemas/atom",
    "oai": "http://www.openarchives.org/OAI/2.0/",
    "raw": "http://arxiv.org/OAI/arXivRaw/",
}
_ID = re.compile(r"https?://arxiv\.org/abs/(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})v\d+")
_TOTAL = re.compile(r"[0-9]{1,9}")
_ERROR_TITLE = "Error"  # of the entry in which the query API reports one, under status 200
# What the manual (3.4) says of errors that are the query's; others may pass.
_OUR_FAULT = re.compile(r"incorrect|malformed|must be", re.IGNORECASE)
_WITHDRAWN = re.compile(r"\A\s*withdrawn|\b(?:been|is|was) withdrawn\b", re.IGNORECASE)
_PHYSICS = {
    "astro-ph", "cond-mat", "gr-qc", "hep-ex", "hep-lat", "hep-ph", "hep-th", "math-ph", "nlin",
    "nucl-ex", "nucl-th", "physics", "quant-ph",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A paper as the query API lists it.

    Attributes:
        id: without version, such as ``2401.00001`` or ``math.GT/0309136``.
        published: submission of version 1, UTC.
        category: the primary one.
        categories: all of them, the primary one included.
        is_withdrawn: its authors' comment says so.
    """

    id: str
    published: dt.datetime
    title: str
    authors: tuple[str, ...]
    category: str | None
    categories: tuple[str, ...]
    is_withdrawn: bool = False


@dataclass(frozen=True)
class Unreadable:
    """An entry of a list that is no paper; ``id`` as far as it is known."""

    id: str
    detail: str


def find_papers(
    month: Month, categories: Sequence[str], fetcher: Fetcher
) -> list[Entry | Unreadable]:
    """Page through the papers of some categories that were submitted in a month, oldest first.

    The API's window is in whole minutes and includes both ends, so papers of the first minute of
    the next month may be among them. One that moves between pages while they are read comes twice.

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
    """The licences of papers, which only OAI-PMH knows.

    Where many are wanted, the changes of the month are listed first: that covers most of a recent
    month in a few requests. What is not among them is asked for record by record.

    Args:
        month: in which the papers were submitted.
        categories: that they belong to.
        fetcher: of the source.
        num_wanted: about how many papers will be asked for.

    Raises:
        SourceUnavailable: OAI-PMH does not answer.
        SourceChanged: an answer is not as documented.
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
        """Return the URL of a paper's licence; None where it has none.

        Args:
            paper: arXiv id without version.

        Raises:
            ItemFailed: this record could not be had.
            SourceUnavailable, SourceChanged: as above.
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
    """Return OAI's name of a category: ``cs:cs:CL`` of cs.CL, ``physics:hep-th`` of hep-th."""
    archive, _, subject = category.partition(".")
    group = "physics" if archive in _PHYSICS else archive
    return ":".join(filter(None, (group, archive, subject)))


def _list_licences(month: Month, set_name: str, fetcher: Fetcher) -> dict[str, str | None]:
    """Return what a list has; one that ends early, with an error or without, is no harm."""
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
    """Whether a page is empty though its total says that there is more, or an error may pass."""
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


def _text(node: Any, tag: str) -> str:
    return " ".join(node.findtext(f"atom:{tag}", "", _NAMESPACES).split())


def _is_error(node: Any) -> bool:
    return _text(node, "title") == _ERROR_TITLE and "/api/errors" in _text(node, "id")


def _read_entry(node: Any) -> Entry | Unreadable:
    """Return a paper; only its address and date cannot be done without."""
    address, title = _text(node, "id"), _text(node, "title")
    if _is_error(node):
        raise SourceChanged(f"arXiv: the query API refuses: {_text(node, 'summary')[:200]!r}")
    match, published = _ID.fullmatch(address), _instant(_text(node, "published"))
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


def _instant(text: str) -> dt.datetime | None:
    """Read an instant; None where it is none, or without its time zone could be any."""
    try:
        moment = dt.datetime.fromisoformat(text)
        return moment.astimezone(dt.UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _read_licences(answer: Any) -> dict[str, str | None]:
    return {
        record.findtext("raw:id", "", _NAMESPACES): record.findtext(
            "raw:license", None, _NAMESPACES
        )
        for record in answer.iterfind(".//raw:arXivRaw", _NAMESPACES)
    }
