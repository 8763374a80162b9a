"""The shapes of responses: their fields and types, never their values.

A response of a live site is compared with an expected one, recorded or simulated. A field that
every expected response has, and no live one, is a fault: the site or the expectation is wrong.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, Protocol

import lxml.html
from defusedxml import DefusedXmlException, ElementTree
from lxml import etree

from core.errors import SourceChanged

HEADERS = ("content-type", "etag", "last-modified", "link", "x-ratelimit-remaining")
MAX_FIELDS = 5_000  # of one kind of request; a hostile response may have any number
_NAME = re.compile(r"[A-Za-z_$@][\w.:@$-]{0,60}", re.ASCII)
_MAX_PATH = 800  # characters of a path; fields within are not looked at
_SEEN = 4096  # bytes of a body without structure that are looked at


class Fetched(Protocol):
    """A response; crawlers have the class of it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers by lower-case name."""

    @property
    def body(self) -> bytes:
        """The decompressed bytes."""

    def json(self) -> Any:
        """Return the body as JSON; raise SourceChanged if it is none."""


class Place(NamedTuple):
    """A field in a response; ``is_first`` is false for later elements of a list."""

    path: str
    type: str
    parent: str | None
    is_first: bool = True


@dataclass
class Shape:
    """The fields in all responses of one kind: types, parents, and counts, by path of the field."""

    types: dict[str, set[str]] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    num_seen: Counter[str] = field(default_factory=Counter)
    num_within: Counter[str] = field(default_factory=Counter)

    def add(self, fetched: Fetched) -> None:
        """Add a response of this kind."""
        for path, kind, parent, is_first in chain(_headers(fetched), _body(fetched)):
            if path in self.types or len(self.types) < MAX_FIELDS:
                self.types.setdefault(path, set()).add(kind)
                self.parents[path] = parent
                self.num_seen[path] += 1
                self.num_within[path] += is_first

    def is_always(self, path: str) -> bool:
        """Return True if each parent of a field has the field."""
        parent = self.parents[path]
        return parent is None or self.num_within[path] >= self.num_seen[parent]


@dataclass(frozen=True)
class Difference:
    """A difference between live and expected responses, of one kind of request and one field.

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
        """Return True if a crawler may depend on what has changed."""
        return self.what in ("missing", "another type")


def compare(expected: Mapping[str, Shape], true: Mapping[str, Shape]) -> Iterator[Difference]:
    """Yield the differences by kind of request; faults come first."""
    for kind in sorted({*expected, *true}):
        if kind not in true:
            yield Difference(kind, "", "not asked", "only the expected site was asked so")
        elif kind not in expected:
            yield Difference(kind, "", "new", "only the true site was asked so")
        else:
            found = _compare(kind, expected[kind], true[kind])
            yield from sorted(found, key=lambda each: (not each.is_fault, each.what, each.path))


def _compare(kind: str, expected: Shape, true: Shape) -> Iterator[Difference]:
    """Yield where the shape of true responses differs from the simulated one."""
    for path, types in expected.types.items():
        there = true.types.get(path)
        if there is None and expected.parents[path] in {None, *true.types}:
            what = "missing" if expected.is_always(path) else "not seen"
            yield Difference(kind, path, what, " or ".join(sorted(types)))
        elif there is not None and not types & there and there != {"null"}:
            detail = f"{' or '.join(sorted(there))}; expected: {' or '.join(sorted(types))}"
            yield Difference(kind, path, "another type", detail)
    for path, types in true.types.items():
        if path not in expected.types and true.parents[path] in {None, *expected.types}:
            yield Difference(kind, path, "new", " or ".join(sorted(types)))


def _headers(fetched: Fetched) -> Iterator[Place]:
    yield Place("response", "response", None)
    for name in HEADERS:
        value = fetched.headers.get(name)
        if value:
            kind = value.partition(";")[0].strip() if name == "content-type" else "text"
            yield Place(f"header {name}", kind, "response")


def _body(fetched: Fetched) -> Iterator[Place]:
    """Yield the places of a response, read as JSON, XML or HTML."""
    start = fetched.body[:_SEEN].lstrip()
    if start[:1] in (b"{", b"["):
        try:
            yield from _json(fetched.json(), "$", "response")
            return
        except SourceChanged:
            pass
    if start[:1] == b"<" and not re.match(rb"<!doctype html|<html", start, re.IGNORECASE):
        try:
            yield from _xml(ElementTree.fromstring(fetched.body), "", "response")
            return
        except (ElementTree.ParseError, DefusedXmlException):
            pass
    if start[:1] == b"<":
        yield from _html(fetched.body)
    else:
        yield Place("body", _packing(fetched.body), "response")


def _json(value: Any, path: str, parent: str, is_first: bool = True) -> Iterator[Place]:
    """Yield each place of a JSON value with its type; items of a list share a place."""
    if isinstance(value, dict):
        yield Place(path, "object", parent, is_first)
        passed: set[str] = set()
        for name, each in value.items() if len(path) < _MAX_PATH else ():
            inner = name if _NAME.fullmatch(name) else "{}"  # a key that is an id is a value
            yield from _json(each, f"{path}.{inner}", path, inner not in passed)
            passed.add(inner)
    elif isinstance(value, list):
        yield Place(path, "list", parent, is_first)
        for number, each in enumerate(value if len(path) < _MAX_PATH else ()):
            yield from _json(each, f"{path}[]", path, number == 0)
    else:
        names = {bool: "boolean", int: "number", float: "number", str: "text"}
        yield Place(path, names.get(type(value), "null"), parent, is_first)


def _xml(node: Any, path: str, parent: str, is_first: bool = True) -> Iterator[Place]:
    """Yield each element and attribute of an XML tree; equal siblings share a place."""
    path = f"{path}/{_local(node.tag)}"
    yield Place(path, "element", parent, is_first)
    for name in node.attrib:
        yield Place(f"{path}@{_local(name)}", "attribute", path)
    passed: set[str] = set()
    for child in node if len(path) < _MAX_PATH else ():
        name = _local(child.tag)
        yield from _xml(child, path, path, name not in passed)
        passed.add(name)


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]


def _html(body: bytes) -> Iterator[Place]:
    """Yield the selectors of a page's elements, each once."""
    try:
        tree = lxml.html.document_fromstring(body)
    except (etree.LxmlError, ValueError):
        yield Place("body", "text", "response")
        return
    selectors: dict[str, None] = {}
    for node in tree.iter(etree.Element):
        selectors |= dict.fromkeys(_selectors(node))
    for selector in selectors:
        yield Place(selector, "element", "response")


def _selectors(node: Any) -> Iterator[str]:
    """Yield CSS selectors of an element, by tag, class and attributes that name something."""
    yield node.tag
    yield from (f"{node.tag}.{name}" for name in node.get("class", "").split() if name.isascii())
    for name in ("property", "itemprop", "rel", "name", "datetime"):
        value = node.get(name)
        if value is not None and node.tag in ("meta", "link", "time", "a", "span", "div"):
            yield f"{node.tag}[{name}]" if name == "datetime" else f"{node.tag}[{name}={value}]"


def _packing(body: bytes) -> str:
    """Return how a body is packed: gzip, tar, PDF, binary or text."""
    if body.startswith(b"\x1f\x8b"):
        try:
            inner = zlib.decompressobj(wbits=31).decompress(body, _SEEN)
        except (zlib.error, gzip.BadGzipFile):
            return "gzip"
        return "gzip of tar" if inner[257:262] == b"ustar" else "gzip"
    if body.startswith(b"%PDF"):
        return "pdf"
    return "binary" if b"\0" in body[:_SEEN] else "text"
