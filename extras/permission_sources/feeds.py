"""Articles of sites that list them in a feed (RSS, Atom) or in sitemaps, each an HTML page.

The formats are standards: https://www.rssboard.org/rss-specification, RFC 4287, and
https://www.sitemaps.org/protocol.html with Google's news extension. A listed page belongs to the
month that the page itself states (``text.pages``). A listed date of another month spares the
request. Pages that state a change after the month's end are dropped (``edited_later``).
"""

from __future__ import annotations

import datetime as dt
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml import DefusedXmlException

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged
from core.month import Month
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo, missing_item
from crawlers.text import archives, charsets, pages
from crawlers.text.cleaning import drop_controls
from crawlers.web.fetcher import Fetched, get_list, read_time

MAX_LISTS = 500  # sitemaps of one index
_GZIP = b"\x1f\x8b\x08"
_MOST_LAYERS = 2  # a packed file is packed again by some servers
_SECTION = re.compile(r"(<!\[CDATA\[|\]\]>)")
_REFERENCE = re.compile(r"&(#x?[0-9A-Fa-f]{1,8};|[A-Za-z][A-Za-z0-9]{1,31};)?")
_OF_XML = ("amp;", "lt;", "gt;", "quot;", "apos;")
_MOST_PREFIXES = 30
_PREFIX = re.compile(r"</?([A-Za-z_][\w.-]{0,39}):")
_DECLARED = re.compile(r"\bxmlns:([A-Za-z_][\w.-]{0,39})\s?=")
_ROOT = re.compile(r"<(?:rss|feed|urlset|sitemapindex|rdf:RDF)(?=[\s>])")
_ENTRIES = ("item", "entry", "url", "sitemap")
_DATES = ("pubDate", "published", "publication_date", "lastmod", "date", "updated")


@dataclass(frozen=True)
class ListedPage:
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
        """Yield the paths of pages that may be of the month, from all sitemaps and feeds."""
        left = list(self.lists)
        for _ in range(MAX_LISTS):
            if not left:
                return
            key, path = left.pop(0)
            page = get_list(context.fetcher, key, path, {}, _is_no_list, not_before=month.end)
            for entry in read_feed(page):
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
        """Return a page as a document, or why it is left out."""
        try:
            fetched = context.fetcher.get(self.site, path, is_busy=_is_no_page)
            html = charsets.decode(fetched.body, fetched.headers.get("content-type", ""))
            page = pages.read_page(html, self.elements)
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
        return not read_feed(fetched)
    except SourceChanged:
        return True


def _is_no_page(fetched: Fetched) -> bool:
    return b"<html" not in fetched.body[:100_000].lower()


def read_feed(fetched: Fetched) -> list[ListedPage]:
    """Return the entries of a feed, a sitemap or an index of sitemaps; else raise SourceChanged.

    The body may be packed by gzip, as files of sitemaps are. Time is linear in its length: a field
    belongs to the innermost entry around it.
    """
    try:
        root = _root_of(_text_of(fetched))
    except (ParseError, DefusedXmlException, ValueError, LookupError, ItemUnavailable) as error:
        raise SourceChanged(f"{fetched.url} is no feed and no sitemap: {error}") from error
    if _name(root) not in ("rss", "feed", "urlset", "sitemapindex", "RDF"):
        raise SourceChanged(f"{fetched.url} is no feed and no sitemap: {_name(root)}")
    return [_entry_of(fields) for fields in _entries_below(root)]


def _text_of(fetched: Fetched) -> str:
    """Return the text of a feed, which may be compressed several times."""
    body = fetched.body
    for _ in range(_MOST_LAYERS):
        if body.startswith(_GZIP):
            body = archives.gunzip(body)
    # Some sites write blank lines before the XML declaration, which parsers refuse.
    return charsets.decode(body, fetched.headers.get("content-type", "")).lstrip("\ufeff \t\r\n")


def _root_of(text: str) -> Element:
    """Parse a feed; mend common faults if it is no XML."""
    try:
        root: Element = defusedxml.ElementTree.fromstring(text)
    except ParseError:
        root = defusedxml.ElementTree.fromstring(_mended(text))
    return root


def _mended(text: str) -> str:
    """Return a text that is no XML without the faults that readers of feeds put up with.

    These are names of characters that only HTML has, bare ampersands, control characters, and
    prefixes that are not declared. What is cut stays a fault.
    """
    parts = _SECTION.split(drop_controls(text))
    is_section = False
    for place, part in enumerate(parts):
        if part == "<![CDATA[":
            is_section = True
        elif part == "]]>":
            is_section = False
        elif not is_section:
            parts[place] = _REFERENCE.sub(_readable, part)
    text = "".join(parts)
    missing = sorted(set(_PREFIX.findall(text)) - set(_DECLARED.findall(text)))[:_MOST_PREFIXES]
    names = "".join(f' xmlns:{prefix}="urn:{prefix}"' for prefix in missing)
    return _ROOT.sub(lambda root: root[0] + names, text, count=1)


def _readable(found: re.Match[str]) -> str:
    """Return a reference as XML has it; an ampersand that begins none is a character."""
    name = found[1]
    if not name:
        return "&amp;"
    if name in _OF_XML:
        return found[0]
    meant = html.unescape(found[0])
    return f"&amp;{name}" if meant == found[0] else html.escape(drop_controls(meant))


@dataclass
class _Fields:
    """The texts of an entry, by the names of its elements; of equal names, the first counts."""

    kind: str
    texts: dict[str, str] = field(default_factory=dict)
    link: str = ""  # the first address in an attribute


def _entries_below(root: Element) -> list[_Fields]:
    """Return the entries of an XML feed or sitemap, with the texts of their children."""
    found: list[_Fields] = []
    left: list[tuple[Element, _Fields | None, bool]] = [(root, None, False)]
    while left:
        element, entry, is_child = left.pop()
        name = _name(element)
        is_entry = name in _ENTRIES
        if is_entry:
            entry = _Fields(name)
            found.append(entry)
        elif entry:
            entry.texts.setdefault(name, _bare(element.text or ""))
            if is_child and name == "link":
                entry.link = entry.link or element.get("href", "")
        left.extend((part, entry, is_entry) for part in reversed(element))
    return found


def _bare(text: str) -> str:
    """Return a text without blanks around it, and without the marks of an escaped section."""
    text = text.strip()
    if text.startswith("<![CDATA[") and text.endswith("]]>"):
        return text[9:-3].strip()
    return text


def _entry_of(fields: _Fields) -> ListedPage:
    url = fields.texts.get("loc") or fields.texts.get("link") or fields.link
    dates = (read_time(fields.texts[name], dt.UTC) for name in _DATES if name in fields.texts)
    return ListedPage(url, next(filter(None, dates), None), fields.kind == "sitemap")


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
