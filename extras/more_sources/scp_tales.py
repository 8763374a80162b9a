"""Stories of the SCP wiki (its "tales"), by the SCP Data API: a dump of the pages of each year.

``/data/scp/tales/content_2024.json`` (https://scp-data.tedivm.com) has each page created in a year
with its HTML, ``created_at`` and ``history``, and is renewed daily. A story belongs to the month of
its creation; times without a zone count as UTC. The text is today's: a story with an edit after the
month's end, other than of tags, parent page or files, is dropped (``edited_later``). Boxes about
authors, licences and ratings are left out. The wiki is CC BY-SA 3.0; a page names its authors.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator

from core.errors import ItemUnavailable
from core.month import Month
from crawlers.apis.fields import Fields, show
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo
from crawlers.text import articles
from crawlers.text.pages import read_page
from crawlers.web.fetcher import Fetched, decode, get_list

SITE = "scp_data"
INFO = SourceInfo(
    name="scp_tales",
    title="SCP wiki: tales",
    licence="CC-BY-SA-3.0",
    language="en",
    category="fiction",
    sites={SITE: "https://scp-data.tedivm.com"},
    lag_days=2,
    monthly_bytes=6_000_000,
    whole_months="its files are of years",
)
MAX_BYTES = 256_000_000  # of a year's file

_NAME = re.compile(r"[\w:.-]{1,150}", re.ASCII)
_NO_EDIT = re.compile(r"(?:Added|Removed) tags: |Parent page set to: |Uploaded ")
_BOXES = ("author", "license", "rate", "footer-", "credit")  # beginnings of names of classes
ELEMENTS = "//div[@id='page-content']/*[not({})]".format(
    " or ".join(f"starts-with(@class, '{name}')" for name in _BOXES)
)


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield each story in the order of the file; samples are in random order."""
    path = f"/data/scp/tales/content_{month.first_day.year}.json"
    page = get_list(
        context.fetcher, SITE, path, {}, _is_busy, max_bytes=MAX_BYTES, not_before=month.end
    )
    found = Fields.of(page.url, decode(page))
    read = (_read(name, found.inner(name), month, page.retrieved_at) for name in found.values)
    known = (each for each in read if each is not None)
    return context.sample_list(known, lambda each: each.native_id, lambda each: [each])


def _is_busy(fetched: Fetched) -> bool:
    """Return True for a file without a page, such as an error under status 200."""
    return not Fields.of(fetched.url, decode(fetched)).values


def _read(
    name: str, page: Fields, month: Month, retrieved_at: dt.datetime
) -> Document | Drop | None:
    """Return the story, or its drop; None for a story of another month."""
    created = page.time("created_at", dt.UTC)
    if not _NAME.fullmatch(name) or created is None:
        return Drop(name[:150], "no_date", show(page.values.get("created_at")))
    if created not in month:
        return None
    edits = [
        each.time("date", dt.UTC)
        for each in page.rows("history") or []
        if not _NO_EDIT.match(each.text("comment") or "")
    ]
    times = [created, *filter(None, edits)]
    if not edits or None in edits or max(times) >= month.end:
        return Drop(name, "edited_later", f"last edit {max(times)}, or unknown")
    try:
        text = read_page(page.text("raw_content") or " ", ELEMENTS).text
    except ItemUnavailable as error:
        return Drop(name, "parse_error", str(error))
    title = (page.text("title") or name).removesuffix(" - SCP Foundation")
    url = f"https://scp-wiki.wikidot.com/{name}"
    return Document(
        native_id=name,
        version_id=f"{max(times):%Y%m%d%H%M%S}",
        text=text,
        title=articles.to_line(title),
        url=url,
        event_time=created,
        date_kind="created",
        text_as_of=max(times),
        retrieved_at=retrieved_at,
        licence=INFO.licence,
        attribution=f"“{title}”, SCP wiki, {url} (authors are listed there)",
        cluster_id=f"scp:{name}",
    )
