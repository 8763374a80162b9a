"""News articles of Wikinews by date of publication, as they stood at the month's end.

Wikinews has been read-only since 2026-05-04, so this source serves backfills: 2026-04 is its last
month. An article is in the category of its day (``Category:April 10, 2018``, from its
``{{date}}``), and published if it has ``{{publish}}``. ``event_time`` is the first instant of that
day; Wikinews gives no time (``extra.date_precision``). Words that link to Wikipedia stand in
``{{w}}`` and are kept. Licence: CC BY 2.5, and CC BY 4.0 for what the English edition published
from 2024-12-16 (https://phabricator.wikimedia.org/T381421).

Editions are known by ``_CUSTOMS``. Those of the German one are from memory and not yet confirmed by
an answer of the site; if they are wrong, no article is found and nothing is sealed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.errors import UsageError
from core.month import Month
from crawlers import mediawiki, wiki_documents
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Item,
    Repeat,
    SourceInfo,
)
from crawlers.mediawiki import Edition, MediaWiki, Revision, take

SITE = "wikinews"
INFO = SourceInfo(
    name="wikinews",
    title="Wikinews: published articles",
    licence="CC-BY-2.5",
    language="en",
    category="news",
    sites={SITE: "https://en.wikinews.org"},
    language_sites={SITE: "https://{language}.wikinews.org"},
    request_interval_s=1.0,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    last_month=Month("2026-04"),
)
SHOWN_TEMPLATES = frozenset({"w", "wikipedia", "nowrap"})
CC_BY_4_SINCE = dt.datetime(2024, 12, 16, tzinfo=dt.UTC)  # in English; the German one kept 2.5

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True)
class _Customs:
    """How an edition marks its articles.

    Attributes:
        day: title of the category of a day.
        published: what the wikitext of a published article holds.
    """

    day: str
    published: re.Pattern[str]


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


@dataclass(frozen=True)
class Article:
    """A member of a day's category."""

    page_id: int
    day: dt.datetime


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the month's articles by day; a sample comes in the order drawn.

    Raises:
        UsageError: an edition is asked for whose customs are not known.
        SourceUnavailable, AccessRefused, SourceChanged: see ``MediaWiki``.
    """
    if unknown := sorted(set(context.languages) - set(_CUSTOMS)):
        raise UsageError(
            f"wikinews: how articles are marked is known for {', '.join(sorted(_CUSTOMS))} only, "
            f"not for {', '.join(unknown)} (TIDEMARK_LANGUAGES__WIKINEWS)"
        )
    for edition, share in wiki_documents.editions(INFO, context, SITE):
        wiki = MediaWiki(context.fetcher, edition)
        yield from _fetch_edition(wiki, month, share)


def _fetch_edition(wiki: MediaWiki, month: Month, context: CrawlContext) -> Iterator[Item]:
    articles: dict[int, Article] = {}
    day = month.start
    while day < month.end:
        for page_id in _list_day(wiki, day):
            if page_id in articles:
                yield Repeat(wiki.edition.native_id(page_id), f"again on {day:%Y-%m-%d}")
            else:
                articles[page_id] = Article(page_id, day)
        day += dt.timedelta(days=1)
    yield from wiki_documents.Sample(context).take(
        list(articles.values()),
        lambda article: wiki.edition.native_id(article.page_id),
        lambda batch: _fetch_batch(wiki, batch, month),
    )


def _list_day(wiki: MediaWiki, day: dt.datetime) -> Iterator[int]:
    title = _CUSTOMS[wiki.edition.language].day.format(
        month_name=_MONTHS[day.month - 1], day=day.day, month=day.month, year=day.year
    )
    pieces = wiki.query(
        list="categorymembers",
        cmtitle=title,
        cmnamespace=0,
        cmprop="ids",
        cmlimit="max",
    )
    for piece, _ in pieces:
        for row in mediawiki.rows_of(piece, "categorymembers"):
            yield take(row, "pageid", int)


def _fetch_batch(wiki: MediaWiki, articles: Sequence[Article], month: Month) -> Iterator[Item]:
    """Yield what became of up to BATCH articles, in their order."""
    ids = [article.page_id for article in articles]
    found = wiki_documents.at_month_end(wiki, ids, month)
    for article in articles:
        version = found[article.page_id]
        if isinstance(version, tuple):
            yield _document(wiki.edition, article.day, *version)
        else:
            yield version


def _document(
    edition: Edition, day: dt.datetime, title: str, revision: Revision
) -> Document | Drop:
    """Return a published article; where it is a redirect or hidden, that is said first."""
    is_english_4 = edition.language == "en" and day >= CC_BY_4_SINCE
    item = wiki_documents.document(
        edition,
        title,
        revision,
        event_time=day,
        date_kind="published",
        licence="CC-BY-4.0" if is_english_4 else "CC-BY-2.5",
        shown_templates=SHOWN_TEMPLATES,
        extra={"date_precision": "day"},
    )
    is_published = _CUSTOMS[edition.language].published.search(revision.wikitext or "")
    if isinstance(item, Document) and not is_published:
        return Drop(item.native_id, "withdrawn", "not marked as published at the month's end")
    return item
