"""Simulated GOV.UK news: search API, content API, and HTML pages.

The search API (https://docs.publishing.service.gov.uk/repos/search-api/using-the-search-api.html)
rejects unknown parameters with status 422. The content API
(https://content-api.publishing.service.gov.uk) has more pages than the search index, and newer
data. The index keeps deleted pages for a while, and dates pages by their last major change.
"""

from __future__ import annotations

import datetime as dt
import functools
import html
import uuid
from collections.abc import Iterator

from core.json import JsonObject
from simulator.news import Article, NewsSite, integer
from simulator.server import Request, Response, as_json, as_utc, take_quirk

MAX_COUNT = 1_500  # maximum number of results per response
MAX_START = 500_000
NEWS = "/government/news/"
TYPES = ("press_release", "news_story", "speech", "world_news_story", "government_response")
ODDITIES = (
    "withdrawn", "renamed", "gone", "welsh", "edited_unnoticed", "edited", "updated_old",
    "undated", "short", "bodiless", "translated", "linkless",
)  # fmt: skip
ORGANISATIONS = ("Department for Examples", "Office of Sample Standards", "Ministry of Tests")

_KNOWN = {"q", "count", "start", "order", "fields", "filter_public_timestamp", "debug", "c"}
_TYPE_FILTER = "filter_content_store_document_type"
_NAMESPACE = uuid.UUID(int=0)


class Site(NewsSite):
    """The search API, the content API and the pages."""

    keys: tuple[str, ...] = ("govuk",)
    stories = "govuk"
    oddities = ODDITIES
    robots: str | None = (
        "User-agent: *\nDisallow: /*/print$\n# Don't allow indexing of site search\n"
        "Disallow: /search/all*\nSitemap: https://www.gov.uk/sitemap.xml\n\n"
        "User-agent: AhrefsBot\nCrawl-delay: 10\n\nUser-agent: deepcrawl\nDisallow: /\n"
    )

    @functools.cached_property
    def _by_path(self) -> dict[str, Article]:
        return {_path(article): article for article in self.newsroom.articles}

    def respond(self, request: Request) -> Response:
        """Respond to a request of either API."""
        if request.path == "/api/search.json":
            return self._search(request)
        if request.path.startswith("/api/content/"):
            return self._content(request.path.removeprefix("/api/content"))
        return Response(404)

    def _search(self, request: Request) -> Response:
        """Answer the search API; quirks shift or empty the page."""
        errors = list(_complaints(request))
        if errors:
            return as_json({"error": ". ".join(errors)}, 422)
        if take_quirk(self, "error_as_200"):
            return as_json({"error": "search is unavailable"}, 200, {"Retry-After": "0"})
        count = integer(request, "count", 10)
        start = integer(request, "start", 0)
        assert count is not None and start is not None  # noqa: S101 - checked above
        num_moved = self.count_moved(is_first=start == 0)
        found = [article for article in self.newsroom.articles if _matches(article, request)]
        found.sort(key=lambda article: (_indexed_at(article), article.slug))
        rows = found[max(start - num_moved, 0) :][:count]
        if take_quirk(self, "empty_page"):
            rows = []
        response = {
            "results": [self._entry(article, request) for article in rows],
            "total": len(found) + num_moved, "start": start, "aggregates": {},
            "suggested_queries": [], "suggested_autocomplete": [], "es_cluster": "A",
        }  # fmt: skip
        return as_json(response, 200, {} if rows else {"Retry-After": "0"})

    def _entry(self, article: Article, request: Request) -> JsonObject:
        """Return a result of the search; quirks take or add fields."""
        path = _path(article)
        values: JsonObject = {
            "link": path, "title": article.title, "description": _summary(article),
            "public_timestamp": as_utc(_indexed_at(article)), "format": _type(article),
            "content_store_document_type": _type(article), "content_id": _content_id(article),
            "organisations": [{"title": _organisation(article)}],
            "updated_at": as_utc(article.changed),
        }  # fmt: skip
        wanted = [name for value in request.query.get("fields", []) for name in value.split(",")]
        entry = {name: values[name] for name in wanted or values}
        if article.oddity == "linkless" or take_quirk(self, "missing_fields"):
            entry.pop("link", None)
        if take_quirk(self, "extra_fields"):
            entry["learned_rank"] = {"model": [0.5, None]}
        rest = {"index": "government", "es_score": None, "_id": path, "document_type": "edition"}
        return {**entry, **rest, "elasticsearch_type": "edition"}

    def _content(self, path: str) -> Response:
        """Answer the content API; odd pages are gone or renamed."""
        article, locale = self._find(path)
        if article is None:
            return as_json({"message": "not found"}, 404)
        if article.oddity == "gone":
            return as_json({"base_path": path, "document_type": "gone", "schema_name": "gone"}, 410)
        if article.oddity == "renamed" and path == _path(article):
            return Response(303, {"Location": f"/api/content{path}-renamed"})
        item = _item(article, path, locale)
        if take_quirk(self, "missing_fields"):
            for name in ("links", "description", "withdrawn_notice", "updated_at", "locale"):
                item.pop(name, None)
            item["details"].pop("change_history", None)
        if take_quirk(self, "extra_fields"):
            item.update(cost_centre=[{"n": 1}], details={**item["details"], "new_thing": None})
        return as_json(item)

    def _find(self, path: str) -> tuple[Article | None, str]:
        """Return the article at a path, and its language; None if there is none."""
        article = self._by_path.get(path)
        if article:
            return article, "cy" if article.oddity == "welsh" else "en"
        found = self._by_path.get(path.removesuffix("-renamed").removesuffix(".cy"))
        has_other = found and found.oddity in {"renamed", "translated"}
        if not has_other:
            return None, "en"
        return found, "cy" if path.endswith(".cy") else "en"


def _complaints(request: Request) -> Iterator[str]:
    """Yield what is wrong with the parameters of a search."""
    unknown = sorted(set(request.query) - _KNOWN - {_TYPE_FILTER})
    if unknown:
        yield f"Unexpected parameters: {', '.join(unknown)}"
    for name, most in (("count", MAX_COUNT), ("start", MAX_START)):
        number = integer(request, name, 0)
        if number is None:
            yield f'Invalid value "{request.arg(name)}" for parameter "{name}"'
        elif number > most:
            yield f"Maximum {name} value ({most}) exceeded"
    if _window(request) is None:
        yield 'Invalid value for parameter "public_timestamp" (expected ISO8601 date)'


def _window(request: Request) -> tuple[dt.datetime, dt.datetime] | None:
    """Return the requested first and last time; a last day without a time ends at 23:59."""
    bounds = {"from": "0001-01-01", "to": "9999-12-31"}
    given = request.arg("filter_public_timestamp")
    parts = given.split(",") if given else []
    for part in parts:
        name, _, value = part.partition(":")
        if name not in bounds:
            return None
        bounds[name] = value
    try:
        first, last = (dt.datetime.fromisoformat(bounds[name]) for name in ("from", "to"))
    except ValueError:
        return None
    if ":" not in bounds["to"]:
        last += dt.timedelta(hours=23, minutes=59)
    return first.replace(tzinfo=dt.UTC), last.replace(tzinfo=dt.UTC)


def _matches(article: Article, request: Request) -> bool:
    window = _window(request)
    types = request.query.get(_TYPE_FILTER, [])
    is_in = window is not None and window[0] <= _indexed_at(article) <= window[1]
    return is_in and (not types or _type(article) in types)


def _indexed_at(article: Article) -> dt.datetime:
    """Return the time of the last major change that the (maybe outdated) search index has."""
    if article.oddity == "edited_unnoticed":
        return article.published
    return _last_major_change(article)


def _last_major_change(article: Article) -> dt.datetime:
    is_changed = article.changed > article.published
    return article.changed if is_changed else article.published - dt.timedelta(seconds=4)


def _path(article: Article) -> str:
    return NEWS + article.slug


def _type(article: Article) -> str:
    return TYPES[article.number % len(TYPES)]


def _organisation(article: Article) -> str:
    return ORGANISATIONS[article.number % len(ORGANISATIONS)]


def _content_id(article: Article) -> str:
    return str(uuid.uuid5(_NAMESPACE, _path(article)))


def _summary(article: Article) -> str:
    return article.story.paragraphs[0].split(". ")[0] + "."


def _first_published(article: Article) -> dt.datetime | None:
    """Return when a page was first published; None if it states no date."""
    if article.oddity == "undated":
        return None
    # Page "updated_old" was first published in an earlier month; this month has a major change.
    is_old = article.oddity == "updated_old"
    return article.published - dt.timedelta(days=400) if is_old else article.published


def _item(article: Article, path: str, locale: str) -> JsonObject:
    """Return a page of the content API in JSON."""
    first = _first_published(article)
    is_withdrawn = article.oddity == "withdrawn"
    notice = {"explanation": "<p>Out of date.</p>", "withdrawn_at": as_utc(article.published)}
    return {
        "analytics_identifier": None, "base_path": path, "content_id": _content_id(article),
        "document_type": _type(article), "schema_name": "news_article", "locale": locale,
        "first_published_at": _millis(first) if first else None,
        "public_updated_at": _millis(_last_major_change(article)),
        "updated_at": _millis(article.changed + dt.timedelta(days=200)), "phase": "live",
        "publishing_app": "whitehall", "rendering_app": "frontend", "title": article.title,
        "description": _summary(article), "withdrawn_notice": notice if is_withdrawn else {},
        "links": {
            "organisations": [{"title": _organisation(article), "locale": "en"}],
            "available_translations": _translations(article),
        },
        "details": _details(article, first or article.published, locale),
    }  # fmt: skip


def _translations(article: Article) -> list[JsonObject]:
    locales = ("en", "cy") if article.oddity == "translated" else ()
    suffix = {"en": "", "cy": ".cy"}
    return [{"locale": name, "base_path": _path(article) + suffix[name]} for name in locales]


def _details(article: Article, first: dt.datetime, locale: str) -> JsonObject:
    """Return a page's history of changes and its body."""
    history = [{"public_timestamp": _millis(first), "note": "First published."}]
    if article.changed > first:
        history.insert(0, {"public_timestamp": _millis(article.changed), "note": "Added figures."})
    details: JsonObject = {"change_history": history, "first_public_at": _millis(first)}
    if article.oddity != "bodiless":
        details["body"] = _body(article, locale)
    return {**details, "political": False, "emphasised_organisations": [], "attachments": []}


def _body(article: Article, locale: str) -> str:
    """Return a page's HTML, with a figure, a contact and an attachment that are no text."""
    if article.oddity == "short":
        return '<div class="govspeak"><p>Watch the video.</p></div>'
    parts = [f"<{tag}>{html.escape(text)}</{tag}>" for tag, text in article.blocks]
    if locale == "cy":
        parts = [part.replace(" the ", " y ") for part in parts]
    parts.insert(1, (
        '<figure class="image embedded"><div class="img"><img src="/1.jpg" alt="A hall"></div>'
        "<figcaption><p>Image: the hall last week</p></figcaption></figure>"
    ))  # fmt: skip
    parts.append(
        '<div class="contact" id="contact_1"><h3>Media enquiries</h3>'
        '<p>Email <a href="mailto:press@example.gov.uk">press@example.gov.uk</a></p></div>'
        '<section class="gem-c-attachment"><h2>Annex A</h2><p>PDF, 1.2 MB, 12 pages</p></section>'
    )
    inner = "\n\n".join(parts)
    return f'<div class="govspeak">{inner}\n</div>'


def _millis(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000+00:00"
