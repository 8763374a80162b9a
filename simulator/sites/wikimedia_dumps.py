"""The simulated dumps.wikimedia.org: the history of events of the simulated Wikipedias.

Format: https://wikitech.wikimedia.org/wiki/Data_Platform/Data_Lake/Edits/MediaWiki_history_dumps.
The English wiki has a file a month, the German one a file a year.
"""

from __future__ import annotations

import bz2
import re
from collections.abc import Sequence

from core.month import Month
from simulator.german import GermanWorld
from simulator.server import QuirkName, Request, Response, take_quirk
from simulator.wiki import Page, Wiki
from simulator.world import World

FOLDER = "/other/mediawiki_history/"
NUM_COLUMNS = 78
_PAGE_ID = 28


class Site:
    """The simulated dumps: one snapshot of two wikis, and an older one that is gone."""

    keys: tuple[str, ...] = ("wikimedia_dumps",)
    start = "/other/mediawiki_history/"
    robots: str | None = None

    def __init__(self, world: World) -> None:
        self.quirks: dict[QuirkName, int] = {}
        german = Wiki(GermanWorld.of(world), "de")
        self._wikis = {"enwiki": Wiki(world), "dewiki": german}
        self._snapshot = str(world.last)

    def respond(self, request: Request) -> Response:
        """Answer a folder with its links, a file with its bytes."""
        snapshot, wikis = self._snapshot, self._wikis
        if request.path == FOLDER:
            return _listing([f"{self._world.last - 1}/", f"{snapshot}/", "readme.html"])
        if request.path == f"{FOLDER}{snapshot}/":
            return _listing([f"{name}/" for name in wikis])
        found = re.fullmatch(rf"{FOLDER}{snapshot}/(\w+)/(.*)", request.path)
        if not found or found[1] not in wikis:
            return Response(404)
        files = self._files(found[1])
        if not found[2]:
            return _listing([] if take_quirk(self, "empty_page") else sorted(files))
        if found[2] not in files:
            return Response(404)
        body = bz2.compress(_events(wikis[found[1]], files[found[2]]).encode())
        return Response(200, {"Content-Type": "application/octet-stream"}, body)

    @property
    def _world(self) -> World:
        return self._wikis["enwiki"].world

    def _files(self, database: str) -> dict[str, list[Month]]:
        """Return the months that each file holds, by its name."""
        files: dict[str, list[Month]] = {}
        for month in self._world.months:
            span = str(month) if database == "enwiki" else str(month)[:4]
            files.setdefault(f"{self._snapshot}.{database}.{span}.tsv.bz2", []).append(month)
        return files


def _events(wiki: Wiki, months: Sequence[Month]) -> str:
    """Return lines as in the dump: revisions, pages of all namespaces and users, by time."""
    lines = []
    for month in months:
        for page in sorted(wiki.pages_created(month), key=lambda page: page.revisions[0].timestamp):
            lines.append(_line(wiki, page, "page", "create"))
            lines.append(_line(wiki, page, "revision", "create"))
            lines.append(_line(wiki, page, "page", "move"))
    return "".join(f"{line}\n" for line in lines)


def _line(wiki: Wiki, page: Page, entity: str, event: str) -> str:
    columns = [""] * NUM_COLUMNS
    columns[:5] = [
        "enwiki" if wiki.language == "en" else "dewiki",
        str(page.page_id + 7),
        entity,
        event,
        f"{page.revisions[0].timestamp:%Y-%m-%d %H:%M:%S}.0",
    ]
    columns[5] = r"a comment with\ta tabulator"
    is_gone = page.oddity == "deleted"
    title = page.title.removeprefix("Draft:").replace(" ", "_")
    columns[_PAGE_ID] = "" if is_gone else str(page.page_id)
    columns[_PAGE_ID + 1 : _PAGE_ID + 4] = [title, "" if is_gone else title, "0"]
    columns[_PAGE_ID + 8] = "true" if is_gone else "false"
    return "\t".join(columns)


def _listing(names: Sequence[str]) -> Response:
    links = "".join(f'<a href="{name}">{name}</a>\n' for name in ("../", *names))
    page = f"<html><body><pre>{links}</pre></body></html>"
    return Response(200, {"Content-Type": "text/html"}, page.encode())
