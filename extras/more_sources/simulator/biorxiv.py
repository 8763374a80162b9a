"""Simulated API of bioRxiv and medRxiv: lists of posted versions by interval of days.

As observed in 2026, a page has 30 entries, ``total`` is a string, and ``cursor`` may be a number or
a string. An interval without posts has one message and no entries. Documentation:
https://api.biorxiv.org.
"""

from __future__ import annotations

import re

from core.json import JsonObject
from simulator.news import Article, Newsroom
from simulator.server import Request, Response, WorldSite, as_json, take_quirk
from simulator.world import World

PAGE_SIZE = 30
SERVERS = {"biorxiv": "bioRxiv", "medrxiv": "medRxiv"}
ODDITIES = ("second_version", "all_rights_reserved", "untitled", "dateless")
LICENCES = ("cc_by", "cc_by_nc", "cc_by_nd", "cc_by_nc_nd", "cc0")
_PATH = re.compile(
    r"/details/(biorxiv|medrxiv)/(\d{4}-\d\d-\d\d)/(\d{4}-\d\d-\d\d)/(\d{1,6})(?:/json)?"
)


class Site(WorldSite):
    """Both servers."""

    keys: tuple[str, ...] = ("biorxiv_api",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.newsrooms = {name: Newsroom(world, name, ODDITIES) for name in SERVERS}

    def respond(self, request: Request) -> Response:
        """Respond with a page of a list."""
        asked = _PATH.fullmatch(request.path)
        if asked is None:
            return Response(404)
        server = asked[1]
        first = asked[2]
        last = asked[3]
        cursor = int(asked[4])
        if take_quirk(self, "error_as_200"):
            return as_json({"error": "database is unavailable"}, 200, {"Retry-After": "0"})
        num_moved = self.count_moved(is_first=cursor == 0)
        found = [
            each
            for each in self.newsrooms[server].articles
            if first <= each.published.date().isoformat() <= last
        ]
        total = len(found) + num_moved
        rows = found[max(cursor - num_moved, 0) :][:PAGE_SIZE]
        if not total:
            return as_json({"messages": [{"status": "no posts found"}], "collection": []})
        is_empty = take_quirk(self, "empty_page")
        message = {
            "status": "ok", "category": "all", "interval": f"{first}:{last}",
            "cursor": str(cursor) if cursor else 0, "count": len(rows),
            "count_new_papers": str(total), "total": str(total),
        }  # fmt: skip
        entries = [] if is_empty else [self._entry(server, article) for article in rows]
        headers = {"Retry-After": "0"} if is_empty else {}
        return as_json({"messages": [message], "collection": entries}, 200, headers)

    def _entry(self, server: str, article: Article) -> JsonObject:
        """Return a preprint in JSON; quirks take or add fields."""
        entry = describe(server, article)
        if take_quirk(self, "missing_fields"):
            for name in ("category", "jatsxml", "server", "type"):
                entry.pop(name)
        if take_quirk(self, "extra_fields"):
            entry["institutions"] = [{"ror": None}]
        return entry


def describe(server: str, article: Article) -> JsonObject:
    """Return the API's record of a preprint."""
    number = {"biorxiv": 600_000, "medrxiv": 24_300_000}[server] + article.number
    doi = f"10.64898/{article.published:%Y.%m.%d}.{number}"
    is_reserved = article.oddity == "all_rights_reserved"
    return {
        "title": "" if article.oddity == "untitled" else article.title.replace("&", "&amp;"),
        "authors": "Example, A.; Sample, B. C.", "author_corresponding": "A. Example",
        "author_corresponding_institution": "University of Examples", "doi": doi,
        "date": "" if article.oddity == "dateless" else f"{article.published:%Y-%m-%d}",
        "version": "2" if article.oddity == "second_version" else "1", "type": "new results",
        "license": "cc_no" if is_reserved else LICENCES[article.number % len(LICENCES)],
        "category": "neuroscience", "abstract": " ".join(article.story.paragraphs),
        "jatsxml": f"https://www.{server}.org/content/early/{doi}.source.xml",
        "funder": "NA", "published": "NA", "server": SERVERS[server],
    }  # fmt: skip
