"""The shapes of responses: their fields and types, never their values.

A shape belongs to a kind of request (``request_kinds.py``). A true response is compared with the
simulated one. A field that every simulated response has and no true one is a simulator's fault.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple, cast

import lxml.html
from defusedxml import DefusedXmlException, ElementTree
from lxml import etree

from core.corpus.questions import Question
from core.errors import SourceChanged, SourceError
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Crawler, Document
from crawlers.questions.contract import QuestionContext, QuestionCrawler, QuestionSourceInfo
from crawlers.web.fetcher import Fetched, Fetcher
from tests.crawlers.request_kinds import kind_of

HEADERS = ("content-type", "etag", "last-modified", "link", "x-ratelimit-remaining")
MAX_FIELDS = 5_000  # of one kind of request; a hostile answer has no end of them
NUM_ITEMS = 3  # asked for, to see what a site answers
_NAME = re.compile(r"[A-Za-z_$@][\w.:@$-]{0,60}", re.ASCII)
_SEEN = 4096  # bytes of a body without structure that are looked at


class Place(NamedTuple):
    """A field in a response; ``is_first`` is false for later elements of a list."""

    path: str
    type: str
    parent: str | None
    is_first: bool = True


@dataclass
class Shape:
    """The types of all responses' fields of one kind, with counts of each path and its parents."""

    types: dict[str, set[str]] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    num_seen: Counter[str] = field(default_factory=Counter)
    num_within: Counter[str] = field(default_factory=Counter)

    def add(self, fetched: Fetched) -> None:
        for path, kind, parent, is_first in chain(_headers(fetched), _body(fetched)):
            if path in self.types or len(self.types) < MAX_FIELDS:
                self.types.setdefault(path, set()).add(kind)
                self.parents[path] = parent
                self.num_seen[path] += 1
                self.num_within[path] += is_first

    def is_always(self, path: str) -> bool:
        parent = self.parents[path]
        return parent is None or self.num_within[path] >= self.num_seen[parent]


@dataclass(frozen=True)
class Difference:
    """A difference between a site and its simulator, of one kind of request and one field.

    ``what``: missing, another type, new, not seen (an optional field) or not asked (a kind).
    """

    kind: str
    path: str
    what: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.path} is {self.what} ({self.detail})"

    @property
    def is_fault(self) -> bool:
        return self.what in ("missing", "another type")


class ShapingFetcher(Fetcher):
    def __init__(self, source: str, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._source = source
        self.shapes: dict[str, Shape] = {}

    def get(self, key: str, path: str, *arguments: Any, **options: Any) -> Fetched:
        fetched = super().get(key, path, *arguments, **options)
        params = options.get("params") or (arguments[0] if arguments else None) or {}
        target = f"{path}{'&' if '?' in path else '?'}{'&'.join(f'{name}=' for name in params)}"
        kind = f"{key} {kind_of(target, self._source)}"
        self.shapes.setdefault(kind, Shape()).add(fetched)
        return fetched


@dataclass(frozen=True)
class Watched:
    """The responses of a site to the requests for a few items.

    ``error`` ended the crawl before ``num_items`` sufficed; its response is among the shapes.
    """

    shapes: dict[str, Shape]
    num_items: int
    error: SourceError | None = None


def watch(crawler: Crawler | QuestionCrawler, month: Month, settings: Settings) -> Watched:
    """Request a few items of a month; neither read nor write the cache."""
    info = crawler.INFO
    fetcher = ShapingFetcher(
        f"questions.{info.name}" if isinstance(info, QuestionSourceInfo) else info.name,
        settings,
        info.all_sites(()),
        info.request_interval_s,
        info.redirect_hosts,
        use_cache=False,
        robots_exempt_paths=info.robots_exempt_paths,
        shares_pace=info.shares_pace,
    )
    items = (item for item in _items(crawler, month, settings, fetcher) if _is_kept(item))
    num_items = 0
    try:
        for _ in islice(items, NUM_ITEMS):
            num_items += 1
    except SourceError as error:
        return Watched(fetcher.shapes, num_items, error)
    return Watched(fetcher.shapes, num_items)


def _items(
    crawler: Crawler | QuestionCrawler, month: Month, settings: Settings, fetcher: Fetcher
) -> Iterator[object]:
    if isinstance(crawler.INFO, QuestionSourceInfo):
        walk = cast(QuestionCrawler, crawler)
        found = walk.fetch_questions([month], QuestionContext(settings, fetcher))
        return (item for _, item in found)
    return cast(Crawler, crawler).fetch_month(
        month, CrawlContext(settings, fetcher, limit=NUM_ITEMS)
    )


def _is_kept(item: object) -> bool:
    return isinstance(item, Document | Question)


def compare(simulated: dict[str, Shape], true: dict[str, Shape]) -> Iterator[Difference]:
    for kind in sorted({*simulated, *true}):
        if kind not in true:
            yield Difference(kind, "", "not asked", "only the simulated site was asked so")
        elif kind not in simulated:
            yield Difference(kind, "", "new", "only the true site was asked so")
        else:
            found = _compare(kind, simulated[kind], true[kind])
            yield from sorted(found, key=lambda each: (not each.is_fault, each.what, each.path))


def _compare(kind: str, simulated: Shape, true: Shape) -> Iterator[Difference]:
    for path, types in simulated.types.items():
        there = true.types.get(path)
        if there is None and simulated.parents[path] in {None, *true.types}:
            what = "missing" if simulated.is_always(path) else "not seen"
            yield Difference(kind, path, what, " or ".join(sorted(types)))
        elif there is not None and not types & there and there != {"null"}:
            detail = f"{' or '.join(sorted(there))}; simulated: {' or '.join(sorted(types))}"
            yield Difference(kind, path, "another type", detail)
    for path, types in true.types.items():
        if path not in simulated.types and true.parents[path] in {None, *simulated.types}:
            yield Difference(kind, path, "new", " or ".join(sorted(types)))


def _headers(fetched: Fetched) -> Iterator[Place]:
    yield Place("answer", "answer", None)
    for name in HEADERS:
        if value := fetched.headers.get(name):
            kind = value.partition(";")[0].strip() if name == "content-type" else "text"
            yield Place(f"header {name}", kind, "answer")


def _body(fetched: Fetched) -> Iterator[Place]:
    start = fetched.body[:_SEEN].lstrip()
    if start[:1] in (b"{", b"["):
        try:
            yield from _json(fetched.json(), "$", "answer")
            return
        except SourceChanged:
            pass
    if start[:1] == b"<" and not re.match(rb"<!doctype html|<html", start, re.IGNORECASE):
        try:
            yield from _xml(ElementTree.fromstring(fetched.body), "", "answer")
            return
        except (ElementTree.ParseError, DefusedXmlException):
            pass
    if start[:1] == b"<":
        yield from _html(fetched.body)
    else:
        yield Place("body", _packing(fetched.body), "answer")


def _json(value: Any, path: str, parent: str, is_first: bool = True) -> Iterator[Place]:
    if isinstance(value, dict):
        yield Place(path, "object", parent, is_first)
        passed: set[str] = set()
        for name, each in value.items():
            inner = name if _NAME.fullmatch(name) else "{}"  # a key that is an id is a value
            yield from _json(each, f"{path}.{inner}", path, inner not in passed)
            passed.add(inner)
    elif isinstance(value, list):
        yield Place(path, "list", parent, is_first)
        for number, each in enumerate(value):
            yield from _json(each, f"{path}[]", path, number == 0)
    else:
        names = {bool: "boolean", int: "number", float: "number", str: "text"}
        yield Place(path, names.get(type(value), "null"), parent, is_first)


def _xml(node: Any, path: str, parent: str, is_first: bool = True) -> Iterator[Place]:
    path = f"{path}/{_local(node.tag)}"
    yield Place(path, "element", parent, is_first)
    for name in node.attrib:
        yield Place(f"{path}@{_local(name)}", "attribute", path)
    passed: set[str] = set()
    for child in node:
        name = _local(child.tag)
        yield from _xml(child, path, path, name not in passed)
        passed.add(name)


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]


def _html(body: bytes) -> Iterator[Place]:
    try:
        tree = lxml.html.document_fromstring(body)
    except (etree.LxmlError, ValueError):
        yield Place("body", "text", "answer")
        return
    selectors: dict[str, None] = {}
    for node in tree.iter(etree.Element):
        selectors |= dict.fromkeys(_selectors(node))
    for selector in selectors:
        yield Place(selector, "element", "answer")


def _selectors(node: Any) -> Iterator[str]:
    yield node.tag
    yield from (f"{node.tag}.{name}" for name in node.get("class", "").split() if name.isascii())
    for name in ("property", "itemprop", "rel", "name", "datetime"):
        value = node.get(name)
        if value is not None and node.tag in ("meta", "link", "time", "a", "span", "div"):
            yield f"{node.tag}[{name}]" if name == "datetime" else f"{node.tag}[{name}={value}]"


def _packing(body: bytes) -> str:
    if body.startswith(b"\x1f\x8b"):
        try:
            inner = zlib.decompressobj(wbits=31).decompress(body, _SEEN)
        except (zlib.error, gzip.BadGzipFile):
            return "gzip"
        return "gzip of tar" if inner[257:262] == b"ustar" else "gzip"
    if body.startswith(b"%PDF"):
        return "pdf"
    return "binary" if b"\0" in body[:_SEEN] else "text"
