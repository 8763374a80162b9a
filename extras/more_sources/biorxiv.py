"""Abstracts of new preprints of bioRxiv and medRxiv, by the API of openRxiv.

``/details/<server>/<from>/<to>/<cursor>`` (https://api.biorxiv.org) lists each version that was
posted in an interval of days, with its title, abstract and licence. A preprint belongs to the month
in which version 1 was posted; later versions are dropped (``outside_month``). The API gives a day
and no time, so ``event_time`` is the first instant of that day (``extra.date_precision``). The
documentation speaks of 100 entries a page; in 2026 pages had 30. So the next cursor is the number
of entries read. Whole texts (``jatsxml``) are on www.biorxiv.org and not requested. Preprints whose
authors reserve all rights (``cc_no``) are dropped (``licence``). Preprints that the authors
withdrew keep their record; a later version with the notice is not read.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import ItemUnavailable
from core.month import Period
from crawlers.apis.fields import Fields, show
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo, missing_item
from crawlers.text import articles
from crawlers.web.fetcher import Fetched, Fetcher, decode, get_list

SITE = "biorxiv_api"
INFO = SourceInfo(
    name="biorxiv",
    title="bioRxiv and medRxiv: abstracts of new preprints",
    licence="CC-BY-4.0",
    language="en",
    category="science",
    sites={SITE: "https://api.biorxiv.org"},
    lag_days=2,
    monthly_bytes=4_500_000,
    whole_months=None,
)
SERVERS = ("biorxiv", "medrxiv")
MAX_ENTRIES = 100_000  # of a month and server; a month has some 6,000
LICENCES = {
    "cc0": "CC0-1.0",
    "cc_by": "CC-BY-4.0",
    "cc_by_nc": "CC-BY-NC-4.0",
    "cc_by_nd": "CC-BY-ND-4.0",
    "cc_by_nc_nd": "CC-BY-NC-ND-4.0",
}

_DOI = re.compile(r"10\.\d{4,9}/[\w.()/:;-]{1,100}", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True)
class _Row:
    native_id: str
    fields: Fields
    server: str
    retrieved_at: dt.datetime


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield each new preprint by server and date; samples are in random order."""
    lists = (_list_versions(month, server, context.fetcher) for server in SERVERS)
    rows = itertools.chain.from_iterable(lists)
    return context.sample_list(rows, lambda row: row.native_id, lambda row: [_examine(row, month)])


def _list_versions(month: Period, server: str, fetcher: Fetcher) -> Iterator[_Row | Drop]:
    """Yield the first version of each preprint of a month, page by page."""
    last_day = (month + 1).first_day - dt.timedelta(days=1)
    cursor = total = 0
    while cursor == 0 or cursor < total:
        path = f"/details/{server}/{month.first_day}/{last_day}/{cursor}/json"
        page = get_list(fetcher, SITE, path, {}, _is_busy)
        rows, total = _read_list(page)
        if not rows:
            return
        for number, fields in enumerate(rows, cursor):
            doi = fields.text("doi") or ""
            version = fields.text("version") or "1"
            name = doi if version == "1" else f"{doi}v{version[:9]}"
            if not _DOI.fullmatch(doi):
                where = f"entry {number} of {server} {month}"
                yield Drop(where, "parse_error", show(fields.values))
            elif version != "1":
                yield Drop(name, "outside_month", "a later version of a preprint")
            else:
                yield _Row(doi, fields, server, page.retrieved_at)
        cursor += len(rows)


def _state(fetched: Fetched) -> Fields:
    response = Fields.of(fetched.url, decode(fetched))
    return next(iter(response.rows("messages") or []), Fields(fetched.url))


def _is_busy(fetched: Fetched) -> bool:
    """Return True for an error under status 200, and for an empty page though more follow."""
    state = _state(fetched)
    response = Fields.of(fetched.url, decode(fetched))
    status = state.text("status")
    rows = response.rows("collection")
    if status is None:
        return rows is None
    return status == "ok" and rows == [] and (state.number("total") or 0) > 0


def _read_list(page: Fetched) -> tuple[list[Fields], int]:
    """Return the rows of a page, and the number of all rows; no rows if there are no posts."""
    response = Fields.of(page.url, decode(page))
    state = _state(page)
    rows = response.need("collection", response.rows("collection"), "a list")
    if not rows and state.text("status") != "ok":
        state.need("status", _no_posts(state), "ok, or that there are no posts")
        return [], 0
    total = state.number("total")  # "total": "156", and without quotes
    is_sound = total is not None and 0 <= total <= MAX_ENTRIES
    return rows, int(state.need("total", total if is_sound else None, f"up to {MAX_ENTRIES}"))


def _no_posts(state: Fields) -> str | None:
    status = state.text("status") or ""
    return status if status.startswith("no posts found") else None


def _examine(row: _Row, month: Period) -> Item:
    """Return a preprint's abstract as a document, or why it is left out."""
    native_id = row.native_id
    fields = row.fields
    day = fields.text("date") or ""
    posted = fields.time("date", dt.UTC) if _DAY.fullmatch(day) else None
    if posted is None:
        return Drop(native_id, "no_date", show(fields.values.get("date")))
    if posted not in month:
        return Drop(native_id, "outside_month", f"posted {day}")
    licence = LICENCES.get((fields.text("license") or "").strip().lower().replace("-", "_"))
    if licence is None:
        return Drop(native_id, "licence", show(fields.values.get("license")))
    abstract = fields.text("abstract")
    title = fields.text("title")
    if abstract is None or title is None:
        return Drop(native_id, "parse_error", "no text in title or abstract")
    try:
        text = articles.to_text(abstract)
        title = articles.to_line(title)
    except ItemUnavailable as error:
        return missing_item(native_id, error)
    server = {"biorxiv": "bioRxiv", "medrxiv": "medRxiv"}[row.server]
    return Document(
        native_id=native_id,
        version_id="v1",
        text=text,
        title=title,
        url=f"https://doi.org/{native_id}",
        event_time=posted,
        date_kind="published",
        text_as_of=posted,
        retrieved_at=row.retrieved_at,
        licence=licence,
        attribution=f"“{title}”, {server}, https://doi.org/{native_id} (authors are listed there)",
        cluster_id=f"preprint:{native_id}",
        extra={
            "server": server,
            "subject": fields.text("category") or "",
            "date_precision": "day",
        },
    )
