"""Pages of a simulated wiki for a person to click through: ``/wiki/TITLE`` and old revisions."""

from __future__ import annotations

import html
import re
from urllib.parse import quote, unquote

from simulator.server import Request, Response
from simulator.wiki import Page, Wiki

_MAIN_PAGES = ("", "Main_Page", "Wikipedia:Hauptseite")


def show(wiki: Wiki, request: Request) -> Response:
    """Answer ``/wiki/TITLE``, ``/w/index.php?oldid=ID`` and ``?curid=ID``; ``/`` leads there."""
    if request.path == "/":
        return Response(301, {"Location": "/wiki/Main_Page"})
    if request.path == "/w/index.php":
        revision_id, page_id = request.arg("oldid"), request.arg("curid")
        page = wiki.page(int(page_id)) if page_id.isdecimal() else None
        if revision_id.isdecimal():
            page = wiki.page_of_revision(int(revision_id))
        return _show_page(page, int(revision_id) if revision_id.isdecimal() else None)
    if not request.path.startswith("/wiki/"):
        return Response(404)
    name = unquote(request.path.removeprefix("/wiki/"))
    if name in _MAIN_PAGES:
        return _show_main_page(wiki)
    title = name.replace("_", " ")
    return _show_page(wiki.find(title)[0] or wiki.find_created(title), None)


def _show_main_page(wiki: Wiki) -> Response:
    pages = [*wiki.subjects(), *wiki.pages_created(wiki.world.last)]
    links = (f'<li><a href="/wiki/{quote(p.title)}">{html.escape(p.title)}</a></li>' for p in pages)
    return _page("Main Page", f"<ul>{''.join(links)}</ul>")


def _show_page(page: Page | None, revision_id: int | None) -> Response:
    found = [
        row for row in (page.revisions if page else ()) if revision_id in (None, row.revision_id)
    ]
    if page is None or page.oddity == "deleted" or not found:
        return Response(404, {"Content-Type": "text/html"}, b"<h1>There is no such page</h1>")
    blocks = re.split(r"\n\n+", html.escape(found[-1].wikitext or "(removed)"))
    history = "".join(
        f'<li><a href="/w/index.php?oldid={row.revision_id}">{row.timestamp:%F %H:%M}</a></li>'
        for row in page.revisions
    )
    text = "".join(f"<p>{block}</p>" for block in blocks)
    return _page(page.title, f"{text}<h2>Versions</h2><ul>{history}</ul>")


def _page(title: str, body: str) -> Response:
    text = f"<!DOCTYPE html><title>{html.escape(title)}</title><h1>{html.escape(title)}</h1>{body}"
    return Response(200, {"Content-Type": "text/html; charset=UTF-8"}, text.encode())
