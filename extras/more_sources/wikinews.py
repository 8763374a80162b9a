"""News articles of Wikinews by date of publication, as of the month's end.

Wikinews has been read-only since 2026-05-04, so 2026-04 is the last month of this source. An
article is in the category of its day (``Category:April 10, 2018``), which its template ``{{date}}``
sets. The template ``{{publish}}`` marks a published article. ``event_time`` is the first instant of
that day, as Wikinews gives no time (``extra.date_precision``). Words that are linked to Wikipedia
are in ``{{w}}`` templates and are kept. The licence is CC BY 2.5, or CC BY 4.0 for English articles
from 2024-12-16 (https://phabricator.wikimedia.org/T381421). ``_CUSTOMS`` has the names of category
and template in each language. The German names have not been checked against the site yet. If they
are wrong, no article is found and nothing is sealed.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import UsageError
from core.month import Month, Period
from crawlers.apis import mediawiki, wiki_documents
from crawlers.apis.mediawiki import Edition, MediaWiki, Revision, take
from crawlers.contract import CrawlContext, Document, Drop, Item, Repeat, SourceInfo
from crawlers.text.wikitext import WIKINEWS_TEMPLATES

SITE = "wikinews"
INFO = SourceInfo(
    name="wikinews",
    title="Wikinews: published articles",
    licence="CC-BY-2.5",
    language="en",
    category="news",
    sites={SITE: "https://en.wikinews.org"},
    language_sites={SITE: "https://{language}.wikinews.org"},
    shares_pace=mediawiki.PACE,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    needs_contact=mediawiki.NEEDS_CONTACT,
    last_month=Month("2026-04"),
    whole_months=None,
)
CC_BY_4_SINCE = dt.datetime(2024, 12, 16, tzinfo=dt.UTC)  # in English; German stays at CC BY 2.5

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True)
class _Customs:
    day: str  # title of a day's category, with placeholders
    published: re.Pattern[str]  # pattern in the wikitext of a published article


_CUSTOMS = {
    "en": _Customs(
        "Category:{month_name} {day}, {year}",
        re.compile(r"\{\{\s*publish(?:ed)?\s*(?:\||\}\})", re.I),
    ),
    "de": _Customs(
        "Kategorie:{day:02d}.{month:02d}.{year}",
        re.compile(r"\{\{\s*artikelstatus:\s*fertig\s*(?:\||\}\})", re.I),
    ),
}


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield the month's articles by day; sampled crawls use a seeded random order."""
    unknown = sorted(set(context.languages) - set(_CUSTOMS))
    if unknown:
        raise UsageError(
            f"wikinews: how articles are marked is known for {', '.join(sorted(_CUSTOMS))} only, "
            f"not for {', '.join(unknown)} (TIDEMARK_LANGUAGES__WIKINEWS)"
        )
    for wiki, share in wiki_documents.editions(INFO, context, SITE):
        yield from _fetch_edition(wiki, month, share)


def _fetch_edition(wiki: MediaWiki, month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield the articles of each day of a month, as they were at its end."""
    days: dict[int, dt.datetime] = {}
    day = month.start
    while day < month.end:
        for page_id in _list_day(wiki, day):
            if page_id in days:
                yield Repeat(wiki.edition.native_id(page_id), f"again on {day:%Y-%m-%d}")
            else:
                days[page_id] = day
        day += dt.timedelta(days=1)
    make = functools.partial(_document, wiki.edition)
    yield from wiki_documents.sample_at_month_end(wiki, month, context, days, make)


def _list_day(wiki: MediaWiki, day: dt.datetime) -> Iterator[int]:
    """Yield the ids of the pages in the category of a day."""
    title = _CUSTOMS[wiki.edition.language].day.format(
        month_name=_MONTHS[day.month - 1], day=day.day, month=day.month, year=day.year
    )
    pieces = wiki.query(
        list="categorymembers", cmtitle=title, cmnamespace=0, cmprop="ids", cmlimit="max"
    )
    for piece, _ in pieces:
        for row in mediawiki.list_rows(piece, "categorymembers"):
            yield take(row, "pageid", int)


def _document(
    edition: Edition, day: dt.datetime, title: str, revision: Revision
) -> Document | Drop:
    """Return an article that was marked as published, or why it is left out."""
    is_english_4 = edition.language == "en" and day >= CC_BY_4_SINCE
    item = wiki_documents.document(
        edition,
        title,
        revision,
        event_time=day,
        date_kind="published",
        licence="CC-BY-4.0" if is_english_4 else "CC-BY-2.5",
        shown_templates=WIKINEWS_TEMPLATES,
        extra={"date_precision": "day"},
    )
    is_published = _CUSTOMS[edition.language].published.search(revision.wikitext or "")
    if isinstance(item, Document) and not is_published:
        return Drop(item.native_id, "withdrawn", "not marked as published at the month's end")
    return item
