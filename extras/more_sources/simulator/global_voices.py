"""Simulated REST API of Global Voices, which runs WordPress.

Documentation: https://developer.wordpress.org/rest-api/reference/posts/. Parameters ``after`` and
``before`` are exclusive bounds in local time. A page number that is too high gets status 400.
"""

from __future__ import annotations

import datetime as dt
import functools
import html
import re

from core.json import JsonObject
from simulator.news import Article, Newsroom, integer
from simulator.server import Request, Response, WorldSite, as_json, take_quirk
from simulator.world import World

PATH = "/wp-json/wp/v2/posts"
MAX_PER_PAGE = 100
UTC_OFFSET = dt.timedelta(hours=-4)  # UTC offset of the site's local time
ODDITIES = ("partner", "protected", "edited", "undated", "roundup", "sister")

_PARTNER = "This story was originally published by the Example Herald."
_SISTER = "A version of this story first appeared on Rising Voices, a Global Voices project."


class Site(WorldSite):
    """The site in one language.

    The real robots.txt also has ``Crawl-delay: 10``. The simulated robots.txt leaves it out,
    because it would slow down tests.
    """

    robots: str | None = (
        "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /?s=\n"
        "\nSitemap: https://globalvoices.org/sitemap_index.xml\n"
    )

    def __init__(self, world: World, language: str = "en") -> None:
        is_home = language == "en"
        self.keys: tuple[str, ...] = ("global_voices" if is_home else f"global_voices_{language}",)
        super().__init__(world)
        self._language = language
        name = "global_voices" if is_home else f"global_voices/{language}"
        self.newsroom = Newsroom(world, name, ODDITIES)

    @functools.cached_property
    def _posts(self) -> dict[int, Article]:
        return dict(enumerate(self.newsroom.articles, 800_001))

    def respond(self, request: Request) -> Response:
        """Respond to a request of the API."""
        if request.path == PATH:
            return self._list(request)
        if request.path.startswith("/wp-json/"):
            return _error(404, "rest_no_route", "No route was found matching the URL.")
        return Response(404)

    def _list(self, request: Request) -> Response:
        """Answer a list of posts; quirks shift or empty the page."""
        complaint = _complaint(request)
        if complaint:
            return _error(400, "rest_invalid_param", f"Invalid parameter(s): {complaint}")
        if take_quirk(self, "error_as_200"):
            response = {"code": "wp_die", "message": "Error establishing a database connection"}
            return as_json(response, 200, {"Retry-After": "0"})
        number = int(request.arg("page", "1"))
        size = int(request.arg("per_page", "10"))
        num_moved = self.count_moved(is_first=number == 1)
        found = [post for post in self._posts.items() if _is_within(post[1], request)]
        total = len(found) + num_moved
        num_pages = -(-total // size)
        if number > num_pages and total:
            text = "The page number requested is larger than the number of pages available."
            return _error(400, "rest_post_invalid_page_number", text)
        rows = found[max((number - 1) * size - num_moved, 0) :][:size]
        if take_quirk(self, "empty_page"):
            rows = []
        counts = {"X-WP-Total": str(total), "X-WP-TotalPages": str(num_pages)}
        wanted = set(filter(None, request.arg("_fields").split(",")))
        posts = [self._post(number, article, wanted) for number, article in rows]
        return as_json(posts, 200, counts if rows else {**counts, "Retry-After": "0"})

    def _post(self, number: int, article: Article, wanted: set[str]) -> JsonObject:
        """Return the wanted fields of a post; quirks take or add fields."""
        post = _describe(number, article, self._language)
        if wanted:
            post = {name: value for name, value in post.items() if name in wanted}
        if take_quirk(self, "missing_fields"):
            for name in ("modified_gmt", "status", "type", "link"):
                post.pop(name, None)
        if take_quirk(self, "extra_fields"):
            post.update(acf=[], jetpack_sharing_enabled=True, class_list={"7": "post"})
        return post


def _complaint(request: Request) -> str:
    """Return the name of a wrong parameter, or an empty string."""
    per_page = integer(request, "per_page", 10)
    number = integer(request, "page", 1)
    if per_page is None or not 1 <= per_page <= MAX_PER_PAGE:
        return "per_page"
    if not number:
        return "page"
    for name in ("after", "before"):
        value = request.arg(name)
        if value and not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value):
            return name  # reject a date without a time
    return "" if request.arg("order") == "asc" else "order"  # only "asc" is simulated


def _is_within(article: Article, request: Request) -> bool:
    local = _local_stamp(article.published)
    return request.arg("after") < local < request.arg("before", "9999")


def _link(article: Article) -> str:
    """Return an article's path; its date is local time, so the month may differ from UTC."""
    return f"/{article.published + UTC_OFFSET:%Y/%m/%d}/{article.slug}/"


def _describe(number: int, article: Article, language: str) -> JsonObject:
    """Return a post in JSON, as WordPress does."""
    saved = article.changed
    if saved <= article.published:
        saved = article.published - dt.timedelta(hours=5)  # saved early, for scheduled publication
    is_undated = article.oddity == "undated"
    is_protected = article.oddity == "protected"
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
    """Return a post's HTML, with captions, links and embeds that are no text."""
    if article.oddity == "roundup":
        return '<p><a href="https://example.org/">A blog</a> looks back.</p>'
    parts = [f"<{tag}>{html.escape(text)}</{tag}>" for tag, text in article.blocks]
    parts = [part.replace("h2>", "h3>") for part in parts]
    note = {"partner": _PARTNER, "sister": _SISTER}.get(article.oddity)
    if note:
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


def _error(status: int, code: str, text: str) -> Response:
    return as_json({"code": code, "message": text, "data": {"status": status}}, status)
