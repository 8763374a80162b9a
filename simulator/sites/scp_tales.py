"""Simulated SCP Data API: the tales of a year, in the shape of its file of 2026."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from simulator.news import CHANGED_LATER, Article, Newsroom
from simulator.server import Request, Response, WorldSite, as_json, take_quirk
from simulator.world import World

ODDITIES = ("edited_later", "tagged_later", "undated", "no_history")
_PATH = re.compile(r"/data/scp/tales/content_(\d{4})\.json")


class Site(WorldSite):
    """The static files."""

    keys: tuple[str, ...] = ("scp_data",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.newsroom = Newsroom(world, "scp_tales", ODDITIES)

    def respond(self, request: Request) -> Response:
        """Respond with the file of a year."""
        if (asked := _PATH.fullmatch(request.path)) is None:
            return Response(404)
        if take_quirk(self, "error_as_200") or take_quirk(self, "empty_page"):
            return as_json({}, 200, {"Retry-After": "0"})
        found = [each for each in self.newsroom.articles if str(each.published.year) == asked[1]]
        pages = {each.slug: _page(each) for each in found}
        return as_json(pages) if pages else Response(404)


def _page(article: Article) -> dict[str, Any]:
    tagged = article.published + CHANGED_LATER * (article.oddity == "tagged_later")
    edits = (article.published, ""), (article.changed, "typo"), (tagged, "Added tags: ")
    blocks = "".join(f"<{tag}>{escape(text)}</{tag}>\n" for tag, text in article.blocks)
    box = '<div class="authorlink-wrapper"><div class="authorbox"><p>By me</p></div></div>'
    return {
        "created_at": "" if article.oddity == "undated" else _edit(article.published)["date"],
        "creator": "Example", "domain": "scp-wiki.wikidot.com", "link": article.slug,
        "history": [_edit(*each) for each in edits if article.oddity != "no_history"], "rating": 10,
        "raw_content": f'<html><body><div id="page-content">\n{box}{blocks}</div></body></html>',
        "title": f"{article.title} - SCP Foundation", "tags": ["tale"],
    }  # fmt: skip


def _edit(moment: Any, comment: str = "") -> dict[str, str]:
    return {"author": "Example", "comment": comment, "date": f"{moment:%Y-%m-%dT%H:%M:%S}"}
