"""Press releases that US companies file with the SEC: exhibits 99 of current reports (form 8-K).

EDGAR's index of a quarter (``/Archives/edgar/full-index/2024/QTR1/master.idx``) lists all filings
with form, filing date and file. A file holds the whole filing, each document between ``<DOCUMENT>``
lines with its ``<TYPE>``. The text is that of the documents ``EX-99…``, without tables; the form
itself is boilerplate and left out. A filing belongs to the month of its filing date, on which EDGAR
publishes it; ``<ACCEPTANCE-DATETIME>`` (Eastern time, ``extra.accepted``) may be the day before.
Filings are not edited later. Amendments (8-K/A) are not read.

The SEC asks for at most 10 requests a second and a user agent that names a contact
(https://www.sec.gov/search-filings/edgar-search-assistance/accessing-edgar-data); one a second is
sent. robots.txt allows ``/Archives/edgar/data`` and does not close the index. A filing is a public
record, but its author is the company, so no licence is stated: for local use.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged
from core.month import Month
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Item,
    SourceInfo,
    missing_item,
)
from crawlers.text import articles
from crawlers.text.cleaning import clean
from crawlers.web.fetcher import Fetched, Fetcher, get_list, read_time

SITE = "edgar"
INFO = SourceInfo(
    name="edgar",
    title="SEC EDGAR: press releases of companies (8-K, EX-99)",
    licence="LicenseRef-unknown",
    language="en",
    category="finance",
    sites={SITE: "https://www.sec.gov"},
    needs_contact="the SEC blocks programs whose user agent does not name a contact",
    lag_days=1,
    monthly_bytes=1_500_000,
    whole_months="its lists are of quarters, and a week may lie in two",
)
FORM = "8-K"
MAX_INDEX_BYTES = 96_000_000  # a quarter's index has some 30 MB
MAX_FILING_BYTES = 12_000_000  # pictures within the file; the text has some 50 kB
HEADING = "CIK|Company Name|Form Type|Date Filed|File"  # goes on "name", or " Name" in daily ones

_FILE = re.compile(r"edgar/data/\d{1,10}/(\d{10}-\d\d-\d{6})\.txt", re.ASCII)
_ACCEPTED = re.compile(r"<ACCEPTANCE-DATETIME>(\d{14})\b", re.ASCII)
_TYPE = re.compile(r"<TYPE>EX-99(?:\.\w{1,9})?\s", re.ASCII)
_MARKUP = re.compile(r"<(?:p|div|html|body|br|font|table)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Filing:
    accession: str
    company: str
    filed: dt.datetime
    path: str


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield each current report in the index's order; samples are in random order."""
    listed = _list_filings(month, context.fetcher)
    return context.sample_list(
        listed, lambda each: each.accession, lambda each: [_fetch(each, context.fetcher)]
    )


def _list_filings(month: Month, fetcher: Fetcher) -> Iterator[_Filing | Drop]:
    """Yield the filings of a month from the index of its quarter."""
    year, number = (int(part) for part in str(month).split("-"))
    path = f"/Archives/edgar/full-index/{year}/QTR{(number + 2) // 3}/master.idx"
    # The index of a quarter grows until its end, so one from before the month's end lacks filings.
    page = get_list(
        fetcher, SITE, path, {}, _is_no_index, max_bytes=MAX_INDEX_BYTES, not_before=month.end
    )
    lines = iter(page.body.decode("latin-1").splitlines())
    if not any(line.startswith(HEADING) for line in lines):
        raise SourceChanged(f"{page.url} has no line {HEADING!r}; see whether the index changed")
    for line in lines:  # a filing of several companies has a line for each
        filing = _read_line(line, month) if f"|{FORM}|" in line else None
        if filing:
            yield filing


def _is_no_index(fetched: Fetched) -> bool:
    """Return True for a page of HTML (an error under status 200), and for an index without rows."""
    head = fetched.body[:2_000].lstrip().lower()
    return head.startswith((b"<", b"{")) or b"edgar/data/" not in fetched.body


def _read_line(line: str, month: Month) -> _Filing | Drop | None:
    """Return the filing of an index line, or None if it is of another month."""
    parts = line.rstrip().split("|")
    found = _FILE.fullmatch(parts[-1])
    filed = read_time(parts[-2], dt.UTC) if len(parts) == 5 else None
    if found is None or filed is None:
        return Drop(f"line {line[:80]!r}", "parse_error", "no file or no date")
    if filed not in month:
        return None
    company = " ".join(clean(parts[1]).split())
    return _Filing(found[1], company, filed, f"/Archives/{parts[-1]}")


def _fetch(filing: _Filing, fetcher: Fetcher) -> Item:
    """Return the press releases of a filing as a document, or why there is none."""
    try:
        page = fetcher.get(SITE, filing.path, max_bytes=MAX_FILING_BYTES, is_busy=_is_no_filing)
        whole = page.body.decode("utf-8", "replace")
        text = "\n\n".join(filter(None, map(_exhibit_text, whole.split("<DOCUMENT>")[1:])))
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(filing.accession, error)
    except (SourceChanged, AccessRefused) as error:  # a redirect, which concerns this file only
        return Drop(filing.accession, "parse_error", str(error))
    if not text:
        return Drop(filing.accession, "empty", "no exhibit 99 with text")
    accepted = _ACCEPTED.search(whole[:5_000])
    return Document(
        native_id=filing.accession,
        version_id=filing.accession,
        text=text,
        title=f"{filing.company}: press release",
        url=f"{INFO.sites[SITE]}{filing.path}",
        event_time=filing.filed,
        date_kind="published",
        text_as_of=filing.filed,
        retrieved_at=page.retrieved_at,
        licence=INFO.licence,
        attribution=f"{filing.company}, form {FORM} {filing.accession}, SEC EDGAR",
        cluster_id=f"filing:{filing.accession}",
        extra={"date_precision": "day", **({"accepted": accepted[1]} if accepted else {})},
    )


def _is_no_filing(fetched: Fetched) -> bool:
    return b"<DOCUMENT>" not in fetched.body


def _exhibit_text(document: str) -> str:
    """Return the text of a press exhibit; an empty text for documents of other types."""
    if not _TYPE.match(document.lstrip()):
        return ""
    body = document.partition("<TEXT>")[2].partition("</TEXT>")[0]
    if body.lstrip()[:5].upper() == "<PDF>":
        return ""
    if _MARKUP.search(body[:20_000]):
        return articles.to_text(body)
    return "\n\n".join(" ".join(block.split()) for block in re.split(r"\n\s*\n", body))
