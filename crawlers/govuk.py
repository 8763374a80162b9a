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
from typing import Any

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged
from core.month import Month
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    Repeat,
    SourceInfo,
    missing_item,
)
from crawlers.text import articles
from crawlers.text.cleaning import clean
from crawlers.web.fetcher import Fetched, Fetcher, decode, get_list, read_time

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
)
DOCUMENT_TYPES = (
    "authored_article", "government_response", "news_story", "oral_statement", "press_release",
    "speech", "world_news_story", "written_statement",
)  # fmt: skip
PAGE_SIZE = 500  # entries per response; the search API allows 1,500
ATTRIBUTION = "Contains public sector information licensed under the Open Government Licence v3.0"

_EXTRA = ("content_id", "document_type", "updated_at")
_PATH = re.compile(r"/(?:[\w.%~-]+/)*[\w.%~-]+", re.ASCII)
_DAY = dt.timedelta(days=1)


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield each page and its translations, by time of change; samples are in random order."""
    paths = _list_paths(month, context.fetcher)
    return context.sample_list(paths, str, lambda path: _fetch_page(path, month, context))


def _list_paths(month: Month, fetcher: Fetcher) -> Iterator[str | Drop | Repeat]:
    """Yield the path of each page once, oldest first.

    The search window is a day wider than the month on both sides: the two APIs' dates may differ by
    seconds, and the filter ``to`` ends at 23:59:00.
    """
    types = "&".join(f"filter_content_store_document_type={name}" for name in DOCUMENT_TYPES)
    window = f"from:{month.first_day - _DAY},to:{(month + 1).first_day}"
    seen: set[str] = set()
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
            path = _path_of(entry)
            if path is None:
                yield Drop(f"entry {number} of {month}", "parse_error", f"no path: {entry!r}")
            elif path in seen:
                yield Repeat(path, f"entry {number} of the list")
            else:
                seen.add(path)
                yield path
        start += len(entries)


def _is_no_list(fetched: Fetched) -> bool:
    answer = decode(fetched)
    if not isinstance(answer, dict):
        return answer is None
    if "results" not in answer:
        return "error" in answer or "errors" in answer
    total, start = answer.get("total"), answer.get("start")
    has_more = isinstance(total, int) and isinstance(start, int) and total > start
    return has_more and not answer["results"]


def _read_list(page: Fetched) -> tuple[list[Any], int]:
    answer = decode(page)
    if isinstance(answer, dict):
        entries, total = answer.get("results"), answer.get("total")
        if isinstance(entries, list) and isinstance(total, int):
            return entries, total
    raise SourceChanged(
        f"{page.url} is not as documented; expected an object with results and total"
    )


def _path_of(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return None
    path = entry.get("link") or entry.get("_id")
    is_path = isinstance(path, str) and _PATH.fullmatch(path) and ".." not in path.split("/")
    return path if is_path else None


@dataclass(frozen=True)
class _Page:
    """The content API's record of a page; any field may be missing or malformed."""

    path: str  # as requested
    fields: dict[str, Any]
    retrieved_at: dt.datetime

    @property
    def locale(self) -> object:
        return self.fields.get("locale") or INFO.language

    @property
    def details(self) -> dict[str, Any]:
        details = self.fields.get("details")
        return details if isinstance(details, dict) else {}

    @property
    def published(self) -> dt.datetime | None:
        return read_time(self.fields.get("first_published_at"))

    @property
    def changed(self) -> dt.datetime | None:
        """Return the time of the last major change, or of publication if there was none."""
        history = self.details.get("change_history")
        notes = history if isinstance(history, list) else []
        times = [note.get("public_timestamp") for note in notes if isinstance(note, dict)]
        times += [self.fields.get(name) for name in ("public_updated_at", "first_published_at")]
        return max((moment for moment in map(read_time, times) if moment), default=None)

    def links(self, name: str) -> list[dict[str, Any]]:
        links = self.fields.get("links")
        rows = links.get(name) if isinstance(links, dict) else None
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    def translations(self, languages: tuple[str, ...]) -> Iterator[str]:
        for other in self.links("available_translations"):
            path = _path_of({"link": other.get("base_path")})
            if path not in (None, self.path) and other.get("locale") in languages:
                yield str(path)


def _fetch_page(path: str, month: Month, context: CrawlContext) -> Iterator[Item]:
    languages = context.languages or (INFO.language,)
    page = _get_page(path, context.fetcher)
    if not isinstance(page, _Page):
        yield page
        return
    yield _examine(page, month, languages)
    for other in page.translations(languages):
        if isinstance(translation := _get_page(other, context.fetcher), _Page):
            yield _examine(translation, month, languages)
        else:
            yield translation


def _is_no_page(fetched: Fetched) -> bool:
    fields = decode(fetched)
    return fields is None or (isinstance(fields, dict) and "base_path" not in fields)


def _get_page(path: str, fetcher: Fetcher) -> _Page | Drop | Failure:
    try:
        fetched = fetcher.get(SITE, f"/api/content{path}", is_busy=_is_no_page)
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(path, error)
    except SourceChanged as error:  # a redirect loop, which concerns this page only
        return Drop(path, "parse_error", str(error))
    except AccessRefused as error:  # the page redirects to another host
        return Failure(path, "damaged_answer", str(error))
    fields = decode(fetched)
    if not isinstance(fields, dict):
        return Drop(path, "parse_error", "the content API gave no object")
    return _Page(path, fields, fetched.retrieved_at)


def _examine(page: _Page, month: Month, languages: tuple[str, ...]) -> Item:
    if drop := _refuse(page, month, languages):
        return drop
    body, title = page.details.get("body"), page.fields.get("title")
    if not isinstance(body, str) or not isinstance(title, str):
        return Drop(page.path, "parse_error", "a title and details.body were expected, as text")
    try:
        return _document(page, title, articles.to_text(body))
    except ItemUnavailable as error:
        return missing_item(page.path, error)


def _refuse(page: _Page, month: Month, languages: tuple[str, ...]) -> Drop | None:
    path, fields = page.path, page.fields
    published, changed = page.published, page.changed
    if fields.get("document_type") in ("redirect", "gone") or fields.get("base_path", path) != path:
        return Drop(path, "redirect_page", f"now {fields.get('base_path')}")
    notice = fields.get("withdrawn_notice")
    if isinstance(notice, dict) and notice.get("withdrawn_at"):
        return Drop(path, "withdrawn", str(notice["withdrawn_at"]))
    if page.locale not in languages:
        return Drop(path, "wrong_language", str(page.locale))
    if published is None or changed is None:
        return Drop(path, "no_date", f"first_published_at: {fields.get('first_published_at')!r}")
    if published not in month:
        return Drop(path, "outside_month", f"first published {published.isoformat()}")
    if changed >= month.end:
        return Drop(path, "edited_later", f"changed {changed.isoformat()}")
    return None


def _document(page: _Page, title: str, text: str) -> Document:
    published, changed = page.published, page.changed
    assert published and changed  # noqa: S101 - a page without a date was dropped above
    names = [row.get("title") for row in page.links("organisations")]
    organisations = [name for name in names if isinstance(name, str) and name]
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
        category=kind if (kind := page.fields.get("document_type")) in DOCUMENT_TYPES else None,
        language=str(page.locale),
        extra={
            "organisations": organisations,
            **{k: page.fields[k] for k in _EXTRA if isinstance(page.fields.get(k), str)},
        },
    )
