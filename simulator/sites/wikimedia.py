"""Simulated wikis and dumps of Wikimedia; ``simulator/wiki.py`` generates the pages.

The dumps hold the history of edits in this format:
https://wikitech.wikimedia.org/wiki/Data_Platform/Data_Lake/Edits/MediaWiki_history_dumps. The
English wiki has one file per month, the German wiki one file per year.
"""

from __future__ import annotations

import bz2
import re
from collections.abc import Sequence

from core.month import Month
from simulator.mediawiki import WikiSite
from simulator.server import Request, Response, WorldSite, as_html, take_quirk
from simulator.wiki import Page, Wiki
from simulator.wikinews import NewsWiki
from simulator.world import World

FOLDER = "/other/mediawiki_history/"
NUM_COLUMNS = 78
_PAGE_ID = 28


class Wikipedia(WikiSite):
    """The English Wikipedia."""

    keys: tuple[str, ...] = ("wikipedia",)

    def __init__(self, world: World) -> None:
        super().__init__(Wiki(world))


class GermanWikipedia(WikiSite):
    """The German Wikipedia."""

    keys: tuple[str, ...] = ("wikipedia_de",)

    def __init__(self, world: World) -> None:
        super().__init__(Wiki(world.in_german()))


class Wikinews(WikiSite):
    """The English Wikinews."""

    keys: tuple[str, ...] = ("wikinews",)

    def __init__(self, world: World) -> None:
        super().__init__(NewsWiki(world))


class Dumps(WorldSite):
    """Simulated dumps.wikimedia.org: one snapshot of two wikis, and a dead link to an older one."""

    keys: tuple[str, ...] = ("wikimedia_dumps",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._wikis = {"enwiki": Wiki(world), "dewiki": Wiki(world.in_german())}
        self._snapshot = str(world.last)

    def respond(self, request: Request) -> Response:
        """Respond with the links of a folder or the content of a file."""
        snapshot, wikis = self._snapshot, self._wikis
        if request.path == FOLDER:
            return _listing([f"{self.world.last - 1}/", f"{snapshot}/", "readme.html"])
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

    def _files(self, database: str) -> dict[str, list[Month]]:
        files: dict[str, list[Month]] = {}
        for month in self.world.months:
            span = str(month) if database == "enwiki" else str(month)[:4]
            files.setdefault(f"{self._snapshot}.{database}.{span}.tsv.bz2", []).append(month)
        return files


def _events(wiki: Wiki, months: Sequence[Month]) -> str:
    lines = []
    for month in months:
        for new in sorted(wiki.pages_created(month), key=lambda new: new.revisions[0].timestamp):
            events = (("page", "create"), ("revision", "create"), ("page", "move"))
            lines += [_line(wiki, new, entity, event) for entity, event in events]
    return "".join(f"{line}\n" for line in lines)


def _line(wiki: Wiki, new: Page, entity: str, event: str) -> str:
    columns = [""] * NUM_COLUMNS
    columns[:5] = [
        "enwiki" if wiki.language == "en" else "dewiki",
        str(new.page_id + 7),
        entity,
        event,
        f"{new.revisions[0].timestamp:%Y-%m-%d %H:%M:%S}.0",
    ]
    columns[5] = r"a comment with\ta tabulator"
    is_gone = new.oddity == "deleted"
    title = new.title.removeprefix("Draft:").replace(" ", "_")
    columns[_PAGE_ID] = "" if is_gone else str(new.page_id)
    columns[_PAGE_ID + 1 : _PAGE_ID + 4] = [title, "" if is_gone else title, "0"]
    columns[_PAGE_ID + 8] = "true" if is_gone else "false"
    return "\t".join(columns)


def _listing(names: Sequence[str]) -> Response:
    links = "".join(f'<a href="{name}">{name}</a>\n' for name in ("../", *names))
    return as_html(f"<pre>{links}</pre>")


SITE_KINDS = (Wikipedia, GermanWikipedia, Wikinews, Dumps)
