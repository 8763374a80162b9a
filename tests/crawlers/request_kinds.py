"""Kinds of requests of a source: the path without its varying parts, and the parameters.

A segment of a path stays if the code of the source has it (``/src/`` of ``f"/src/{paper}v1"``). Any
other segment, such as an id, a date or a title, becomes ``{}``.
"""

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from crawlers.registry import is_source, load_crawler

# Modules of every crawler; their strings are no part of a source's requests.
_SHARED = {
    "crawlers.web.fetcher",
    "crawlers.web.exchange",
    "crawlers.contract",
    "crawlers.crawling.crawl",
}


def kind_of(url: str, source: str) -> str:
    """Return the kind of a URL (or path and query): ``/w/api.php?action&format&revids``."""
    parts, words = urlsplit(url), words_of(source)
    segments = [
        segment if unquote(segment) in words else "{}" for segment in parts.path.split("/")[1:]
    ]
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)})
    return f"/{'/'.join(segments)}" + (f"?{'&'.join(names)}" if names else "")


@functools.cache
def words_of(source: str) -> frozenset[str]:
    words = {"", "robots.txt"}
    for tree in _trees(_module_of(source), set()):
        words |= {word for text in _constants(tree) if "/" in text for word in text.split("/")}
    return frozenset(re.split("[?#]", word)[0] for word in words)


def _module_of(source: str) -> str:
    found = getattr(load_crawler(source), "__name__", "") if is_source(source) else ""
    return found if found.startswith("extras.") else f"crawlers.{source}"


def _trees(module: str, passed: set[str]) -> Iterator[ast.Module]:
    passed.add(module)
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or module in _SHARED:
        return
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    yield tree
    for name in _imported(tree):
        if name not in passed:
            yield from _trees(name, passed)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if node.module == "crawlers" or re.fullmatch(r"extras\.\w+", node.module):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif node.module.startswith(("crawlers.", "extras.")):
            yield node.module


def _constants(tree: ast.Module) -> Iterator[str]:
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
