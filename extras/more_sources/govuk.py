"""GOV.UK: press releases, news stories, speeches and statements of the UK government.

A page belongs to the month of ``first_published_at`` in the content API
(https://content-api.publishing.service.gov.uk). The search API lists pages by their last *major*
change (https://docs.publishing.service.gov.uk/repos/search-api/). The crawler requests pages with a
last major change in the month. Pages that were published in the month and changed later are not
listed, but would be dropped anyway. The search index may be outdated. So the crawler reads each
page, and drops pages changed after the month's end (``edited_later``). Neither API records minor
changes (by the publishers' rules, corrections of typing errors). ``extra.updated_at`` is the time
of the last write to the record, often a republication of thousands of pages. Withdrawn pages, and
renamed pages (which redirect), are dropped if the index still lists them. The text is only the
body, because the summary above it mostly repeats it. robots.txt disallows ``/search/all``, but
allows both APIs. The content API allows 10 requests a second.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged
from core.month import Period
from crawlers.apis.fields import Fields, show
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    SourceInfo,
    missing_item,
)
from crawlers.text import articles
from crawlers.text.cleaning import clean
from crawlers.web.fetcher import Fetched, Fetcher, decode, get_list

SITE = "govuk"
INFO = SourceInfo(
    name="govuk",
    title="GOV.UK: news, speeches and statements",
    licence="OGL-UK-3.0",
    language="en",
    category="news",
    sites={SITE: "https://www.gov.uk"},
    language_sites={SITE: "https://www.gov.uk"},  # translations are on the same host
    monthly_bytes=4_500_000,
    whole_months=None,
)
DOCUMENT_TYPES = (
    "authored_article", "government_response", "news_story", "oral_statement", "press_release",
    "speech", "world_news_story", "written_statement",
)  # fmt: skip
PAGE_SIZE = 500  # entries per response; the search API allows 1,500
MAX_ENTRIES = 100_000  # of a month; a month has some 3,000
ATTRIBUTION = "Contains public sector information licensed under the Open Government Licence v3.0"

_EXTRA = ("content_id", "document_type", "updated_at")
_PATH = re.compile(r"/(?:[\w.%~-]+/)*[\w.%~-]+", re.ASCII)
MAX_PATH = 500  # characters
_DAY = dt.timedelta(days=1)


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield each page and its translations, by time of change; samples are in random order."""
    paths = _list_paths(month, context.fetcher)
    return context.sample_list(paths, str, lambda path: _fetch_page(path, month, context))


def _list_paths(month: Period, fetcher: Fetcher) -> Iterator[str | Drop]:
    """Yield the path of each listed page, oldest first.

    The search window is a day wider than the month on both sides: the two APIs' dates may differ by
    seconds, and the filter ``to`` ends at 23:59:00.
    """
    types = "&".join(f"filter_content_store_document_type={name}" for name in DOCUMENT_TYPES)
    window = f"from:{month.first_day - _DAY},to:{(month + 1).first_day}"
    start = total = 0
    while start == 0 or start < total:
        params: dict[str, str | int] = {
            "count": PAGE_SIZE, "fields": "link", "filter_public_timestamp": window,
            "order": "public_timestamp", "start": start,
        }  # fmt: skip
        page = get_list(fetcher, SITE, f"/api/search.json?{types}", params, _is_no_list)
        entries, total = _read_list(page)
        if not entries:
            return
        for number, entry in enumerate(entries, start):
            path = _path_of(entry, "link", "_id")
            yield path or Drop(f"entry {number} of {month}", "parse_error", show(entry.values))
        start += len(entries)


def _is_no_list(fetched: Fetched) -> bool:
    """Return True for an error, or an empty page within the list."""
    value = decode(fetched)
    response = Fields.of(SITE, value)
    if "results" not in response.values:
        return value is None or "error" in response.values or "errors" in response.values
    total = response.integer("total")
    start = response.integer("start")
    has_more = total is not None and start is not None and total > start
    return has_more and not response.values["results"]


def _read_list(page: Fetched) -> tuple[list[Fields], int]:
    """Return the results of a page, and the number of all results."""
    response = Fields.of(f"{SITE}: {page.url}", decode(page))
    total = response.integer("total", 0, MAX_ENTRIES)
    return (
        response.need("results", response.rows("results"), "a list"),
        response.need("total", total, f"a number up to {MAX_ENTRIES}"),
    )


def _path_of(entry: Fields, *names: str) -> str | None:
    path = next(filter(None, map(entry.text, names)), "")
    is_path = len(path) <= MAX_PATH and _PATH.fullmatch(path) and ".." not in path.split("/")
    return path if is_path else None


@dataclass(frozen=True)
class _Page:
    """The content API's record of a page; any field may be missing or malformed."""

    path: str  # as requested
    fields: Fields
    retrieved_at: dt.datetime

    @property
    def locale(self) -> str:
        return self.fields.text("locale") or INFO.language

    @property
    def published(self) -> dt.datetime | None:
        return self.fields.time("first_published_at")

    @property
    def changed(self) -> dt.datetime | None:
        """Return the time of the last major change, or of publication if there was none."""
        notes = self.fields.inner("details").rows("change_history") or []
        times = [note.time("public_timestamp") for note in notes]
        times += [self.fields.time("public_updated_at"), self.published]
        return max(filter(None, times), default=None)

    def links(self, name: str) -> list[Fields]:
        return self.fields.inner("links").rows(name) or []

    def translations(self, languages: tuple[str, ...]) -> Iterator[str]:
        for other in self.links("available_translations"):
            path = _path_of(other, "base_path")
            if path not in (None, self.path) and other.text("locale") in languages:
                yield str(path)


def _fetch_page(path: str, month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield a page and its translations into the wanted languages."""
    languages = context.languages or (INFO.language,)
    page = _get_page(path, context.fetcher)
    if not isinstance(page, _Page):
        yield page
        return
    yield _examine(page, month, languages)
    for other in page.translations(languages):
        translation = _get_page(other, context.fetcher)
        if isinstance(translation, _Page):
            yield _examine(translation, month, languages)
        else:
            yield translation


def _is_no_page(fetched: Fetched) -> bool:
    fields = decode(fetched)
    return fields is None or (isinstance(fields, dict) and "base_path" not in fields)


def _get_page(path: str, fetcher: Fetcher) -> _Page | Drop | Failure:
    """Return a page of the content API, or why it is missing."""
    try:
        fetched = fetcher.get(SITE, f"/api/content{path}", is_busy=_is_no_page)
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(path, error)
    except SourceChanged as error:  # a redirect loop, which concerns this page only
        return Drop(path, "parse_error", str(error))
    except AccessRefused as error:  # the page redirects to another host
        return Failure(path, "damaged_answer", str(error))
    return _Page(path, Fields.of(f"{SITE}: {path}", decode(fetched)), fetched.retrieved_at)


def _examine(page: _Page, month: Period, languages: tuple[str, ...]) -> Item:
    """Return a page as a document, or why it is left out."""
    drop = _refuse(page, month, languages)
    if drop:
        return drop
    body = page.fields.inner("details").text("body")
    title = page.fields.text("title")
    if body is None or title is None:
        return Drop(page.path, "parse_error", "no text in title, or in details.body")
    try:
        return _document(page, title, articles.to_text(body))
    except ItemUnavailable as error:
        return missing_item(page.path, error)


def _refuse(page: _Page, month: Period, languages: tuple[str, ...]) -> Drop | None:
    """Return why a page is left out before its text is read; None if it is not."""
    path = page.path
    fields = page.fields
    published = page.published
    changed = page.changed
    now_at = fields.text("base_path") or path
    if fields.text("document_type") in ("redirect", "gone") or now_at != path:
        return Drop(path, "redirect_page", f"now {now_at}")
    withdrawn_at = fields.inner("withdrawn_notice").values.get("withdrawn_at")
    if withdrawn_at:
        return Drop(path, "withdrawn", show(withdrawn_at))
    if page.locale not in languages:
        return Drop(path, "wrong_language", page.locale)
    if published is None or changed is None:
        return Drop(path, "no_date", show(fields.values.get("first_published_at")))
    if published not in month:
        return Drop(path, "outside_month", f"first published {published.isoformat()}")
    if changed >= month.end:
        return Drop(path, "edited_later", f"changed {changed.isoformat()}")
    return None


def _document(page: _Page, title: str, text: str) -> Document:
    """Return a page that has a date as a document."""
    published = page.published
    changed = page.changed
    assert published and changed  # noqa: S101 - a page without a date was dropped above
    names = [row.text("title") for row in page.links("organisations")]
    organisations = [name for name in names if name]
    known = {name: page.fields.text(name) for name in _EXTRA}
    kind = page.fields.text("document_type")
    return Document(
        native_id=page.path,
        version_id=changed.isoformat(),
        text=text,
        title=" ".join(clean(title).split()),
        url=f"{INFO.sites[SITE]}{page.path}",
        event_time=published,
        date_kind="published",
        text_as_of=changed,
        retrieved_at=page.retrieved_at,
        licence=INFO.licence,
        attribution=clean(f"{', '.join(organisations) or 'GOV.UK'}. {ATTRIBUTION}."),
        cluster_id=f"page:{page.path}",
        category=kind if kind in DOCUMENT_TYPES else None,
        language=page.locale,
        extra={"organisations": organisations, **{k: v for k, v in known.items() if v}},
    )
