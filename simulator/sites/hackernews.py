"""Simulated Hacker News: Algolia's search API, and items (stories and comments)."""

from __future__ import annotations

import datetime as dt
import functools
import html
import re
from dataclasses import dataclass

from core.json import JsonObject
from core.month import Month
from simulator.server import Request, Response, WorldSite, as_json, take_quirk
from simulator.world import Story

MAX_HITS = 1_000  # maximum number of results per query, over all pages
_NUMBERS = re.compile(r"created_at_i(>=|<)(\d+)")
_ITEM = re.compile(r"/api/v1/items/(\d+)")
_AUTHORS = ("ada_example", "boris", "throwaway1234")


@dataclass(frozen=True)
class Post:
    """A story or a comment; ``text`` is the visible text of the HTML ``body``."""

    id: int
    created_at: dt.datetime
    title: str
    body: str | None
    text: str
    comments: tuple[Post, ...] = ()
    is_gone: bool = False

    @property
    def author(self) -> str:
        """The user name of the author, which crawlers must not store."""
        return _AUTHORS[self.id % len(_AUTHORS)]


class Site(WorldSite):
    """The search API and the items."""

    keys: tuple[str, ...] = ("hackernews",)

    @functools.cached_property
    def stories(self) -> dict[int, Post]:
        """All stories by id, oldest first."""
        posted = [post for month in self.world.months for post in self._stories(month)]
        return {post.id: post for post in sorted(posted, key=lambda p: (p.created_at, p.id))}

    def respond(self, request: Request) -> Response:
        """Respond to a search or to a request for an item."""
        if request.path == "/api/v1/search_by_date":
            return self._search(request)
        match = _ITEM.fullmatch(request.path)
        if match:
            story = self.stories.get(int(match[1]))
            if story is None or story.is_gone:
                return as_json({"status": 404, "error": "Not Found"}, 404)
            return as_json(self._item(story))
        return Response(404)

    def _search(self, request: Request) -> Response:
        """Answer a search by date; quirks empty, shift or change the page."""
        size = request.arg("hitsPerPage", "20")
        page = request.arg("page", "0")
        if not size.isdecimal() or not page.isdecimal():
            return as_json({"message": "invalid hitsPerPage", "status": 400}, 400)
        filters = [part for part in request.arg("numericFilters").split(",") if part]
        if not all(_NUMBERS.fullmatch(part) for part in filters):
            return as_json({"message": "invalid numericFilters", "status": 400}, 400)
        if take_quirk(self, "error_as_200"):
            return as_json({"message": "internal error", "status": 500})
        found = []
        if request.arg("tags") in {"", "story"}:
            newest_first = reversed(self.stories.values())
            found = [each for each in newest_first if all(_holds(part, each) for part in filters)]
        hits_per_page = min(int(size), 1_000)
        start = int(page) * hits_per_page
        hits = found[:MAX_HITS][start : start + hits_per_page]
        total = len(found)
        pages = -(-min(len(found), MAX_HITS) // max(hits_per_page, 1))
        if start >= MAX_HITS:
            hits = []
            total = 0
            pages = 0
        if hits and take_quirk(self, "empty_page"):
            hits = []
        if hits and hits[-1] == found[-1]:
            before = self._before(found[-1])
            if before and take_quirk(self, "moving_items"):
                # adds a story before the requested time
                hits = [*hits, before]
                total = total + 1
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        return as_json({
            "hits": [_hit(story, is_bare, is_odd) for story in hits],
            "nbHits": total, "nbPages": pages, "page": int(page), "hitsPerPage": hits_per_page,
            "exhaustiveNbHits": True, "query": "", "params": request.raw_query,
            "processingTimeMS": 5,
        })  # fmt: skip

    def _before(self, story: Post) -> Post | None:
        ids = list(self.stories)
        place = ids.index(story.id)
        return self.stories[ids[place - 1]] if place else None

    def _item(self, story: Post) -> JsonObject:
        """Return a story with its comments; quirks take or add fields."""
        if take_quirk(self, "missing_fields"):
            children = [
                {"id": c.id, "created_at_i": _epoch(c), "text": c.body} for c in story.comments
            ]
            return {"id": story.id, "children": children}
        item = _record(story, "story") | {"title": story.title, "url": None, "points": 3}
        if take_quirk(self, "extra_fields"):
            item |= {"options": [{"<b>": 1}], "undocumented": [None]}
        reply = {"id": story.id + 90, "text": "<p>A reply to a comment.", "children": []}
        item["children"] = [
            _record(c, "comment") | {"parent_id": story.id, "children": [reply]}
            for c in reversed(story.comments)
        ]
        return item

    def _stories(self, month: Month) -> list[Post]:
        """Return a month's stories; the last ones lack comments, authors or are gone."""
        count = len(self.world.stories(month, "hackernews"))
        step = (month.end - month.start) // (count + 3)
        stories = []
        for number in range(count + 3):
            created_at = (month.start + number * step).replace(microsecond=0)
            if number == count - 1:
                created_at = month.end - dt.timedelta(seconds=1)
            world_story = self.world.story(month, "hackernews", number)
            identity = int(f"{month.start:%y%m}{number:05d}00")
            body = None
            text = ""
            if number % 3 == 0 and number < count:
                body, text = _compose(world_story, number)
            comments: tuple[Post, ...] = ()
            if number != count:
                comments = self._comments(month, identity, created_at, number)
            if number == count + 1:
                comments = tuple(Post(c.id, c.created_at, "", None, "") for c in comments)
            title = f"{'Ask HN: ' if body else ''}{world_story.title}"
            is_gone = number == count + 2
            stories.append(Post(identity, created_at, title, body, text, comments, is_gone))
        return stories

    def _comments(
        self, month: Month, story_id: int, posted_at: dt.datetime, number: int
    ) -> tuple[Post, ...]:
        """Return comments on a story: two of the month, a deleted one, and a late one."""
        if number % 6 == 3:
            return ()
        room = month.end - posted_at
        comments = []
        for index in range(2):
            story = self.world.story(month, f"hackernews/{story_id}", index)
            body, text = _compose(story, number + index)
            when = (posted_at + room * (index + 1) / 4).replace(microsecond=0)
            comments.append(Post(story_id + index + 1, when, "", body, text))
        comments.append(Post(story_id + 3, posted_at, "", None, ""))
        comments.append(Post(story_id + 4, month.end, "", "Late.", "Late."))
        return tuple(comments)


def _compose(story: Story, number: int) -> tuple[str, str]:
    """Return a story as HTML and as text; <p> begins every paragraph except the first."""
    address = "https://example.org/" + story.key
    parts = [html.escape(story.paragraphs[0]).replace("/", "&#x2F;")]
    texts = [story.paragraphs[0]]
    for paragraph in story.paragraphs[1:]:
        opening, _, rest = html.escape(paragraph).partition(" ")
        parts.append(f"<i>{opening}</i> {rest}")
        texts.append(paragraph)
    if number % 2:
        code = f'  if (a < {number} && b > 0)\n      return "{story.title}";'
        parts.append(f"<pre><code>{html.escape(code)}\n</code></pre>")
        texts.append(code)
    escaped = html.escape(address).replace("/", "&#x2F;")
    parts.append(f'See <a href="{escaped}" rel="nofollow">{escaped}</a> for it.')
    texts.append(f"See {address} for it.")
    return "<p>".join(parts), "\n\n".join(texts)


def _epoch(post: Post) -> int:
    return int(post.created_at.timestamp())


def _holds(part: str, story: Post) -> bool:
    match = _NUMBERS.fullmatch(part)
    assert match is not None  # noqa: S101 - checked before
    is_from = _epoch(story) >= int(match[2])
    return is_from == (match[1] == ">=")


def _hit(story: Post, is_bare: bool, is_odd: bool) -> JsonObject:
    """Return a story as a search result; ``is_bare`` leaves out optional fields."""
    hit: JsonObject = {
        "objectID": str(story.id),
        "title": story.title,
        "created_at_i": _epoch(story),
    }
    if story.body is not None:
        hit["story_text"] = story.body
    if is_odd:
        hit |= {"relevancy_score": 1234, "undocumented": {"<b>": None}}
    if is_bare:
        return hit
    return hit | {
        "author": story.author, "points": 3, "url": None if story.body else "https://example.org/",
        "num_comments": len(story.comments), "created_at": f"{story.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "story_id": story.id,
        "_tags": [
            "story", f"author_{story.author}", f"story_{story.id}",
            *["ask_hn"] * story.title.startswith("Ask HN: "),
        ],
        "_highlightResult": {"title": {"value": story.title, "matchLevel": "none"}},
    }  # fmt: skip


def _record(post: Post, kind: str) -> JsonObject:
    is_deleted = kind == "comment" and post.body is None
    return {
        "id": post.id, "type": kind, "author": None if is_deleted else post.author,
        "created_at": f"{post.created_at:%Y-%m-%dT%H:%M:%S.000Z}", "created_at_i": _epoch(post),
        "text": post.body, "children": [], "options": [], "points": None, "parent_id": None,
    }  # fmt: skip
