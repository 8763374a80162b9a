"""Simulated sites that list articles by a standard: a sitemap, an RSS feed, an Atom feed.

Only the standards are simulated, not the true sites, of which no recording is at hand. The pages
state title and dates as JSON-LD, and their text in the elements that the crawlers read.
"""

from __future__ import annotations

import email.utils
import functools
import html
import json

from simulator.news import Article, NewsSite
from simulator.server import Request, Response, as_utc, take_quirk

ODDITIES = ("edited", "undated", "gone", "elsewhere")


class _FeedSite(NewsSite):
    oddities = ODDITIES
    index = ""  # path of an index of sitemaps, if the site has one
    listing = "/list.xml"
    root = "urlset"
    element = ("<article>", "</article>")

    @functools.cached_property
    def _by_path(self) -> dict[str, Article]:
        return {f"/articles/{article.slug}": article for article in self.newsroom.articles}

    def respond(self, request: Request) -> Response:
        """Respond with a list or a page."""
        base = f"http://{request.headers['host']}"
        if request.path == self.index:
            return self._list(f"<sitemap><loc>{base}{self.listing}</loc></sitemap>", "sitemapindex")
        if request.path == self.listing:
            rows = [self.entry(f"{base}{path}", each) for path, each in self._by_path.items()]
            rows.append(self.entry("https://elsewhere.example/x", self.newsroom.articles[0]))
            return self._list("".join(rows), self.root)
        article = self._by_path.get(request.path)
        if article is None or article.oddity == "gone":
            return Response(404)
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return Response(200, headers, self._page(article).encode())

    def _list(self, rows: str, root: str) -> Response:
        """Answer a feed or sitemap; quirks empty or replace it."""
        if take_quirk(self, "error_as_200"):
            return Response(200, {"Retry-After": "0"}, b"<html><body>Sorry</body></html>")
        if take_quirk(self, "empty_page"):
            return Response(200, {"Retry-After": "0"}, f"<{root}></{root}>".encode())
        return Response(200, {"Content-Type": "text/xml"}, f"<{root}>{rows}</{root}>".encode())

    def entry(self, url: str, article: Article) -> str:
        """Return an article's entry in the list."""
        return f"<url><loc>{url}</loc><lastmod>{as_utc(article.changed)}</lastmod></url>"

    def _page(self, article: Article) -> str:
        """Return an article's HTML, with dates in JSON-LD unless it is undated."""
        stated = {"@type": "NewsArticle", "headline": article.title}
        if article.oddity != "undated":
            stated |= {
                "datePublished": as_utc(article.published),
                "dateModified": as_utc(article.changed),
            }
        blocks = "".join(f"<{tag}>{html.escape(text)}</{tag}>" for tag, text in article.blocks)
        graph = json.dumps({"@context": "https://schema.org", "@graph": [stated]})
        return (
            f'<!DOCTYPE html><html><head><script type="application/ld+json">{graph}</script></head>'
            f"<body><nav><p>Menu</p></nav>{self.element[0]}{blocks}{self.element[1]}</body></html>"
        )


class Sitemap(_FeedSite):
    """A site with an index of sitemaps."""

    keys = ("bbc",)
    stories = "bbc"
    index = "/sitemaps/https-index-com-news.xml"


class Rss(_FeedSite):
    """A site with an RSS feed."""

    keys = ("yahoo_finance",)
    stories = "yahoo_finance"
    listing = "/news/rssindex"
    root = "rss"
    element = ('<div class="caas-body">', "</div>")

    def entry(self, url: str, article: Article) -> str:
        """Return an article's item in the feed."""
        date = email.utils.format_datetime(article.published)
        return f"<item><link>{url}</link><pubDate>{date}</pubDate></item>"


class Atom(_FeedSite):
    """A site with an Atom feed."""

    keys = ("ao3",)
    stories = "ao3"
    listing = "/tags/12/feed.atom"
    root = "feed"
    element = ('<div id="chapters"><div class="userstuff"><h3 id="work">Text</h3>', "</div></div>")

    def entry(self, url: str, article: Article) -> str:
        """Return an article's entry in the feed."""
        return (
            f'<entry><published>{as_utc(article.published)}</published><link href="{url}"/></entry>'
        )


SITE_KINDS = (Sitemap, Rss, Atom)
