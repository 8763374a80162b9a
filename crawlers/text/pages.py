"""Title, dates and text of an article's whole HTML page, from what any site may state in it.

Dates are those of JSON-LD (``datePublished``), of ``<meta>`` elements, or of ``<time datetime>``,
in this order; a day without a time is its first instant in UTC. The text is that of the elements
that the caller names, by default ``<article>`` or ``<main>``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from core.errors import ItemUnavailable
from core.json import JsonObject
from crawlers.text import articles
from crawlers.text.cleaning import drop_controls
from crawlers.web.times import read_time
from crawlers.web.values import load_json

ARTICLE = "//article[not(ancestor::article)] | //main[not(.//article) and not(ancestor::main)]"
MAX_CHARS = 8_000_000  # of a page; scripts make up most of it
_MAX_NODES = 10_000  # of a page's JSON-LD
_META = {
    "published": ("article:published_time", "datePublished", "date", "dc.date"),
    "changed": ("article:modified_time", "dateModified", "last-modified"),
    "title": ("og:title", "title"),
    "url": ("og:url",),
}
_PLACES = {  # the last resort; ``dl`` is of Archive of Our Own
    "published": "//time/@datetime | //dl[@class='stats']/dd[@class='published']/text()",
    "changed": "//dl[@class='stats']/dd[@class='status']/text()",
    "title": "//title/text() | //h1//text()",
}
_JSON = {"published": "datePublished", "changed": "dateModified", "title": "headline"}


@dataclass(frozen=True)
class Page:
    """Facts that a page states; None for a fact that it does not state."""

    title: str | None
    url: str | None
    published: dt.datetime | None
    changed: dt.datetime | None
    text: str  # empty if the page has no such element


def read_page(html: str, elements: str = ARTICLE) -> Page:
    """Return what a page states; ``elements`` is the XPath of the elements with its text.

    Raise ItemUnavailable: ``too_large``, or ``parse_error`` for what is no HTML.
    """
    if len(html) > MAX_CHARS:
        raise ItemUnavailable("too_large", f"{len(html)} characters of HTML, at most {MAX_CHARS}")
    try:
        parser = etree.HTMLParser(no_network=True, encoding="utf-8")
        root = etree.fromstring(
            drop_controls(html).encode(), parser
        )  # a str may declare no encoding
    except etree.LxmlError as error:
        raise ItemUnavailable("parse_error", f"HTML that cannot be read: {error}") from error
    if root is None:
        raise ItemUnavailable("parse_error", "no HTML")
    stated = _stated(root)
    content = "".join(etree.tostring(each, encoding="unicode") for each in root.xpath(elements))
    return Page(
        title=articles.to_line(stated["title"]) if "title" in stated else None,
        url=stated.get("url") or next(iter(root.xpath("//link[@rel='canonical']/@href")), None),
        published=read_time(stated.get("published"), dt.UTC),
        changed=read_time(stated.get("changed"), dt.UTC),
        text=articles.to_text(content),
    )


def _stated(root: Any) -> dict[str, str]:
    """Return the facts that a page states; JSON-LD comes before ``<meta>``, other places last."""
    stated: dict[str, str] = {}
    for node in _json_nodes(root):
        for name, key in _JSON.items():
            value = node.get(key)
            if isinstance(value, str):
                stated.setdefault(name, value)
    metas = {
        str(each.get("property") or each.get("name") or each.get("itemprop")): each.get("content")
        for each in root.iter("meta")
    }
    for name, keys in _META.items():
        value = next((metas[key] for key in keys if metas.get(key)), None)
        if value:
            stated.setdefault(name, value)
    for name, places in _PLACES.items():
        for value in root.xpath(places)[:1]:
            stated.setdefault(name, value)
    return stated


def _json_nodes(root: Any) -> Iterator[JsonObject]:
    """Yield the objects of all JSON-LD scripts, also those in lists and in ``@graph``."""
    left: list[Any] = []
    for script in root.xpath("//script[@type='application/ld+json']/text()"):
        try:
            left.append(load_json(script))
        except ValueError:
            continue
    for _ in range(_MAX_NODES):
        if not left:
            return
        node = left.pop(0)
        if isinstance(node, list):
            left.extend(node)
        elif isinstance(node, dict):
            yield node
            left.append(node.get("@graph"))
