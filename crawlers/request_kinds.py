"""Which requests of a source are of one kind: the same path, but for what varies, and parameters.

A path's segment stays as it is where the code of the source has it (``/src/`` of
``f"/src/{paper}v1"``); whatever else is there, an id, a date or a title, becomes ``{}``.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

# Read by every crawler, and no part of what a source asks for.
_SHARED = {"crawlers.http", "crawlers.exchange", "crawlers.contract", "crawlers.crawl"}


def kind_of(url: str, source: str) -> str:
    """Return the kind of a request: ``/w/api.php?action&format&revids``.

    Args:
        url: or its path and query alone.
        source: whose crawler sends it.
    """
    parts, words = urlsplit(url), words_of(source)
    segments = [
        segment if unquote(segment) in words else "{}" for segment in parts.path.split("/")[1:]
    ]
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)})
    return f"/{'/'.join(segments)}" + (f"?{'&'.join(names)}" if names else "")


@functools.cache
def words_of(source: str) -> frozenset[str]:
    """Return the segments of paths that the code of a source has, its shared modules included."""
    words = {"", "robots.txt"}
    for tree in _trees(f"crawlers.{source}", set()):
        words |= {word for text in _constants(tree) if "/" in text for word in text.split("/")}
    return frozenset(re.split("[?#]", word)[0] for word in words)


def _trees(module: str, passed: set[str]) -> Iterator[ast.Module]:
    """Yield a module of this room, and those of this room that it imports."""
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
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crawlers."):
            yield str(node.module)
        elif isinstance(node, ast.ImportFrom) and node.module == "crawlers":
            yield from (f"crawlers.{alias.name}" for alias in node.names)


def _constants(tree: ast.Module) -> Iterator[str]:
    """Yield the texts in the code, docstrings left out."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
