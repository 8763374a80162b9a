"""Articles of sites that list them in a feed (RSS, Atom) or in sitemaps, each an HTML page.

The formats are standards: https://www.rssboard.org/rss-specification, RFC 4287, and
https://www.sitemaps.org/protocol.html with Google's news extension. A listed page belongs to the
month that the page itself states (``text.pages``). A listed date of another month spares the
request. Pages that state a change after the month's end are dropped (``edited_later``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml import DefusedXmlException

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged
from core.month import Month
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo, missing_item
from crawlers.text import pages
from crawlers.web.fetcher import Fetched, get_list, read_time

MAX_LISTS = 500  # sitemaps of one index
_ENTRIES = ("item", "entry", "url", "sitemap")
_DATES = ("pubDate", "published", "publication_date", "lastmod", "updated")


@dataclass(frozen=True)
class Entry:
    """An address that a feed or sitemap lists."""

    url: str
    date: dt.datetime | None
    is_list: bool  # True for a sitemap in an index of sitemaps


@dataclass(frozen=True)
class FeedSite:
    """A site, its lists, and the elements of its pages that hold the text."""

    info: SourceInfo
    site: str  # key of the pages' host
    lists: Sequence[tuple[str, str]]  # key of the host and path of each list
    elements: str = pages.ARTICLE

    def fetch_month(self, month: Month, context: CrawlContext) -> Iterator[Item]:
        """Yield the month's articles in the order of the lists; samples are in random order."""
        listed = self._list(month, context)
        return context.sample_list(listed, str, lambda path: [self._fetch(path, month, context)])

    def _list(self, month: Month, context: CrawlContext) -> Iterator[str | Drop]:
        left = list(self.lists)
        for _ in range(MAX_LISTS):
            if not left:
                return
            key, path = left.pop(0)
            page = get_list(context.fetcher, key, path, {}, _is_no_list, not_before=month.end)
            for entry in read_entries(page):
                target = self._path_of(entry.url, context)
                if target is None or (entry.date and entry.date < month.start):
                    continue  # a date after the month is kept: a later change hides the first
                if entry.is_list:
                    left.append((self.site, target))
                else:
                    yield target
        raise SourceChanged(f"{self.info.name}: more than {MAX_LISTS} sitemaps in one index")

    def _path_of(self, url: str, context: CrawlContext) -> str | None:
        """Return the path of an address on the site; None for one on another host."""
        for base in (self.info.sites[self.site], context.fetcher.base_url(self.site)):
            path = url.removeprefix(base.rstrip("/"))
            if path != url and path.startswith("/") and len(path) <= 500:
                return path.partition("#")[0]
        return None

    def _fetch(self, path: str, month: Month, context: CrawlContext) -> Item:
        try:
            fetched = context.fetcher.get(self.site, path, is_busy=_is_no_page)
            page = pages.read_page(pages.decode_page(fetched.body), self.elements)
        except (ItemUnavailable, ItemFailed) as error:
            return missing_item(path, error)
        except AccessRefused as error:  # a redirect to another host, such as one that asks consent
            return Drop(path, "http_403", str(error))
        if page.published is None:
            return Drop(path, "no_date", "neither in JSON-LD nor in meta elements")
        if page.published not in month:
            return Drop(path, "outside_month", page.published.isoformat())
        changed = max(page.published, page.changed or page.published)
        if changed >= month.end:
            return Drop(path, "edited_later", changed.isoformat())
        if not page.text:
            raise SourceChanged(
                f"{fetched.url} has no text in {self.elements}; see whether the pages changed"
            )
        url = f"{self.info.sites[self.site]}{path}"
        return Document(
            native_id=path,
            version_id=changed.isoformat(),
            text=page.text,
            title=page.title or path,
            url=url,
            event_time=page.published,
            date_kind="published",
            text_as_of=changed,
            retrieved_at=fetched.retrieved_at,
            licence=self.info.licence,
            attribution=f"{self.info.title}, {url}",
            cluster_id=f"page:{path}",
        )


def _is_no_list(fetched: Fetched) -> bool:
    try:
        return not read_entries(fetched)
    except SourceChanged:
        return True


def _is_no_page(fetched: Fetched) -> bool:
    return b"<html" not in fetched.body[:100_000].lower()


def read_entries(fetched: Fetched) -> list[Entry]:
    """Return the entries of a feed, a sitemap or an index of sitemaps; else raise SourceChanged."""
    try:
        root = defusedxml.ElementTree.fromstring(fetched.body)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise SourceChanged(f"{fetched.url} is no feed and no sitemap: {error}") from error
    if _name(root) not in ("rss", "feed", "urlset", "sitemapindex", "RDF"):
        raise SourceChanged(f"{fetched.url} is no feed and no sitemap: {_name(root)}")
    found = []
    for each in root.iter():
        if _name(each) in _ENTRIES:
            texts = {_name(part): (part.text or "").strip() for part in reversed(list(each.iter()))}
            links = [part.get("href") for part in each if _name(part) == "link"]
            url = texts.get("loc") or texts.get("link") or next(filter(None, links), "")
            dates = (read_time(texts[name], dt.UTC) for name in _DATES if name in texts)
            found.append(Entry(url, next(filter(None, dates), None), _name(each) == "sitemap"))
    return found


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
