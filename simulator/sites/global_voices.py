"""Global Voices, a WordPress: REST API, month archives and stories for people.

REST API: https://developer.wordpress.org/rest-api/reference/posts/. ``after`` and ``before`` are
compared with the site's own time, and leave out the instant itself; a page beyond the last is a
400.
"""

from __future__ import annotations

import datetime as dt
import functools
import html
import json
import re
from typing import Any

from core.month import Month
from simulator.news import Article, Newsroom, integer, link_list, page
from simulator.server import QuirkName, Request, Response, take_quirk
from simulator.world import World

PATH = "/wp-json/wp/v2/posts"
MAX_PER_PAGE = 100
UTC_OFFSET = dt.timedelta(hours=-4)  # of the site's own time
ODDITIES = ("partner", "protected", "edited", "undated", "roundup", "sister")
POSTS_ON_A_PAGE = 15  # of an archive for people

_ARCHIVE = re.compile(r"/(\d{4})/(\d{2})/(?:page/(\d{1,4})/)?")
_STORY = re.compile(r"/\d{4}/\d{2}/\d{2}/[a-z0-9-]+/")
_PARTNER = (
    "This story was originally published by the Example Herald. An edited version is republished "
    "on Global Voices as part of a content-sharing agreement."
)
_SISTER = "A version of this story first appeared on Rising Voices, a Global Voices project."
Json = dict[str, Any]


class Site:
    """See ``simulator.server.Site``.

    The real robots.txt also has ``Crawl-delay: 10``, as the source's own pace does; it is left out
    here, because the fetcher would keep to it.

    Args:
        language: of the site; each language has one of its own.
    """

    robots: str | None = (
        "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /?s=\n"
        "\nSitemap: https://globalvoices.org/sitemap_index.xml\n"
    )

    def __init__(self, world: World, language: str = "en") -> None:
        self.keys: tuple[str, ...] = (
            ("global_voices",) if language == "en" else (f"global_voices_{language}",)
        )
        self.quirks: dict[QuirkName, int] = {}
        self._language = language
        name = "global_voices" if language == "en" else f"global_voices/{language}"
        self.newsroom = Newsroom(world, name, ODDITIES)
        self._num_moved = 0  # posts that appeared before the others while a list was read

    @functools.cached_property
    def _posts(self) -> dict[int, Article]:
        return dict(enumerate(self.newsroom.articles, 800_001))

    def respond(self, request: Request) -> Response:
        """Answer the API, and the pages for people."""
        if request.path == PATH:
            return self._list(request)
        if request.path.startswith("/wp-json/"):
            return _error(404, "rest_no_route", "No route was found matching the URL.")
        if request.path == "/":
            months = [(f"/{month.first_day:%Y/%m}/", str(month)) for month in self._months]
            return page("Global Voices", f"<h1>Global Voices</h1>{link_list(months)}")
        if match := _ARCHIVE.fullmatch(request.path):
            return self._archive(match[1], match[2], int(match[3] or 1))
        if _STORY.fullmatch(request.path):
            return self._story(request.path)
        return _not_found()

    @property
    def _months(self) -> list[Month]:
        return self.newsroom.world.months

    def _list(self, request: Request) -> Response:
        if complaint := _complaint(request):
            return _error(400, "rest_invalid_param", f"Invalid parameter(s): {complaint}")
        if take_quirk(self, "error_as_200"):
            answer = {"code": "wp_die", "message": "Error establishing a database connection"}
            return _json(200, answer, {"Retry-After": "0"})
        number, size = int(request.arg("page", "1")), int(request.arg("per_page", "10"))
        if number == 1:
            self._num_moved = 0
        elif take_quirk(self, "moving_items"):
            self._num_moved += 1
        found = [post for post in self._posts.items() if _is_within(post[1], request)]
        if request.arg("order", "desc") == "desc":
            found.reverse()
        total = len(found) + self._num_moved
        num_pages = -(-total // size)
        if number > num_pages and total:
            text = "The page number requested is larger than the number of pages available."
            return _error(400, "rest_post_invalid_page_number", text)
        rows = found[max((number - 1) * size - self._num_moved, 0) :][:size]
        if take_quirk(self, "empty_page"):
            rows = []
        counts = {"X-WP-Total": str(total), "X-WP-TotalPages": str(num_pages)}
        wanted = set(filter(None, request.arg("_fields").split(",")))
        posts = [self._post(number, article, wanted) for number, article in rows]
        return _json(200, posts, counts if rows else {**counts, "Retry-After": "0"})

    def _post(self, number: int, article: Article, wanted: set[str]) -> Json:
        post = _describe(number, article, self._language)
        if wanted:
            post = {name: value for name, value in post.items() if name in wanted}
        if take_quirk(self, "missing_fields"):
            for name in ("modified_gmt", "status", "type", "link"):
                post.pop(name, None)
        if take_quirk(self, "extra_fields"):
            post.update(acf=[], jetpack_sharing_enabled=True, class_list={"7": "post"})
        return post

    def _archive(self, year: str, month: str, number: int) -> Response:
        """Serve a page of a month, newest first."""
        wanted = f"/{year}/{month}/"
        found = [a for a in reversed(self._posts.values()) if _link(a).startswith(wanted)]
        rows = found[(number - 1) * POSTS_ON_A_PAGE :][:POSTS_ON_A_PAGE]
        if not rows:
            return _not_found()
        links = link_list([(_link(article), article.title) for article in rows])
        if found[number * POSTS_ON_A_PAGE :]:
            links += f'<a class="older" href="{wanted}page/{number + 1}/">Older stories</a>'
        return page(f"Stories from {year}-{month}", f"<h1>{year}-{month}</h1>{links}")

    def _story(self, path: str) -> Response:
        found = [article for article in self._posts.values() if _link(article) == path]
        if not found:
            return _not_found()
        [article] = found
        title, published = html.escape(article.title), f"{article.published:%Y-%m-%dT%H:%M:%SZ}"
        facts = {"@type": "NewsArticle", "headline": article.title, "datePublished": published}
        head = (
            f'<meta property="article:published_time" content="{published}">'
            f'<script type="application/ld+json">{json.dumps(facts)}</script>'
        )
        body = (
            '<nav><a href="/">Global Voices</a></nav>'
            f'<article><h1>{title}</h1><div class="entry">{_content(article)}</div></article>'
            "<footer>This site is licensed as Creative Commons Attribution 3.0</footer>"
        )
        return page(article.title, body, head, self._language)


def _complaint(request: Request) -> str:
    """Name the first parameter that WordPress would not take; it passes over unknown ones."""
    per_page, number = integer(request, "per_page", 10), integer(request, "page", 1)
    if per_page is None or not 1 <= per_page <= MAX_PER_PAGE:
        return "per_page"
    if not number:
        return "page"
    for name in ("after", "before"):
        value = request.arg(name)
        if value and not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value):
            return name  # a date without a time is refused
    if request.arg("order", "desc") not in {"asc", "desc"}:
        return "order"
    return "" if request.arg("orderby", "date") == "date" else "orderby"


def _is_within(article: Article, request: Request) -> bool:
    """Compare in the site's own time; a suffix that names a zone is converted to it."""
    local = (article.published + UTC_OFFSET).replace(tzinfo=None)
    after, before = (_local(request.arg(name)) for name in ("after", "before"))
    return (after is None or local > after) and (before is None or local < before)


def _local(value: str) -> dt.datetime | None:
    if not value:
        return None
    moment = dt.datetime.fromisoformat(value)
    if moment.tzinfo is not None:
        moment = (moment.astimezone(dt.UTC) + UTC_OFFSET).replace(tzinfo=None)
    return moment


def _link(article: Article) -> str:
    """Dated by the site's own time, so that the address may name another month than UTC."""
    return f"/{article.published + UTC_OFFSET:%Y/%m/%d}/{article.slug}/"


def _describe(number: int, article: Article, language: str) -> Json:
    """Return a post as the API does, all of it that we know of."""
    saved = (
        article.changed
        if article.changed > article.published
        else (
            article.published - dt.timedelta(hours=5)  # written before it was due to appear
        )
    )
    is_undated, is_protected = article.oddity == "undated", article.oddity == "protected"
    host = "globalvoices.org" if language == "en" else f"{language}.globalvoices.org"
    return {
        "id": number, "date": _local_stamp(article.published),
        "date_gmt": None if is_undated else _stamp(article.published),
        "guid": {"rendered": f"https://{host}/?p={number}"}, "modified": _local_stamp(saved),
        "modified_gmt": _stamp(saved), "slug": article.slug, "status": "publish", "type": "post",
        "link": f"https://{host}{_link(article)}",
        "title": {"rendered": html.escape(article.title).replace("’", "&#8217;")},
        "content": {
            "rendered": "" if is_protected else _content(article), "protected": is_protected,
        },
        "excerpt": {"rendered": f"<p>{html.escape(article.story.paragraphs[0][:90])}</p>"},
        "author": 7 + number % 5, "categories": [1], "tags": [],
    }  # fmt: skip


def _content(article: Article) -> str:
    """Return the text as its writers laid it out: pictures, embeds and pointers between it."""
    if article.oddity == "roundup":
        return '<p><a href="https://example.org/">A blog</a> looks back.</p>'
    parts = [f"<{tag}>{html.escape(text)}</{tag}>" for tag, text in article.blocks]
    parts = [part.replace("h2>", "h3>") for part in parts]
    if note := {"partner": _PARTNER, "sister": _SISTER}.get(article.oddity):
        parts.insert(0, f"<p><em>{note}</em></p>")
    parts.insert(1, (
        '<div id="attachment_9" class="wp-caption aligncenter"><img src="/wp-content/1.jpg" alt="">'
        '<p class="wp-caption-text">The square at noon. Photo by A. Example, used with permission.'
        "</p></div>"
    ))  # fmt: skip
    parts.append('<p><strong>Read more:</strong> <a href="/2020/01/01/x/">An older story</a></p>')
    parts.append(
        '<blockquote class="twitter-tweet"><p>So proud! #example</p>&mdash; A (@a) '
        '<a href="https://twitter.com/a/status/1">May 1</a></blockquote>'
        '<script async src="https://platform.twitter.com/widgets.js"></script>'
    )
    return "\n".join(parts)


def _stamp(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}"


def _local_stamp(moment: dt.datetime) -> str:
    return _stamp(moment + UTC_OFFSET)


def _json(status: int, answer: object, headers: dict[str, str] | None = None) -> Response:
    content_type = {"Content-Type": "application/json; charset=UTF-8"}
    return Response(status, {**content_type, **(headers or {})}, json.dumps(answer).encode())


def _error(status: int, code: str, text: str) -> Response:
    return _json(status, {"code": code, "message": text, "data": {"status": status}})


def _not_found() -> Response:
    return Response(404, {"Content-Type": "text/html; charset=UTF-8"}, b"<h1>Not found</h1>")
