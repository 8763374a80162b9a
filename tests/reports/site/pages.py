"""Parsing of written pages: links, cells, ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

from reports.site import build


@contextmanager
def pages_alone(*modules: ModuleType) -> Iterator[None]:
    """Let sites have the pages of some modules alone: a whole site takes four seconds.

    The menu names all pages. It is kept from the first call, also for tests of whole sites.
    """
    build.navigation()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "page_modules", lambda: list(modules))
        yield


@dataclass
class Cell:
    text: str
    value: str | None
    is_number: bool
    why: str | None  # mark of the reason why there is no value


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.cells: list[Cell] = []
        self.titles: list[str] = []
        self._stack: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._stack.append(f"{tag}.{found.get('class') or ''}")
        if found.get("id"):
            self.ids.add(str(found["id"]))
        for name in ("href", "src"):
            if found.get(name):
                self.links.append(str(found[name]))
        if tag in {"td", "th"}:
            is_number = "number" in (found.get("class") or "")
            self.cells.append(Cell("", found.get("data-value"), is_number, found.get("data-why")))
        if tag in {"h1", "h2"}:
            self.titles.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._stack and self._stack.pop().partition(".")[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tags = [each.partition(".")[0] for each in self._stack]
        if {"td", "th"} & set(tags) and "small." not in self._stack:
            self.cells[-1].text += data.strip()
        if {"h1", "h2"} & set(tags):
            self.titles[-1] += data

    def targets(self) -> list[tuple[Path, str]]:
        """Return file and fragment of each link of the site itself."""
        found = []
        for link in self.links:
            if link.startswith(("https://", "http://")):
                continue
            path, _, fragment = link.partition("#")
            file = (self.path.parent / unquote(path)).resolve() if path else self.path
            found.append((file, fragment))
        return found


def read_pages(root: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path.resolve()) for path in sorted(root.rglob("*.html"))}
