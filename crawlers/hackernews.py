"""Hacker News: the month's stories with their direct comments from within the month.

A document belongs to the month of its story. It begins with the story's own text, if any (Ask HN,
Show HN). The comments on the story itself follow, oldest first. Replies to comments are left out.
Stories come from Algolia's search (https://hn.algolia.com/api), which returns at most 1,000 results
per query. So time windows are halved until their results fit. Authors can edit a text for two
hours, but no field records edits. So a text is dated by its posting. The site states no licence, so
the texts are for local use. User names are left out.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Period
from crawlers.apis.fields import Fields
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    Repeat,
    SourceInfo,
    missing_item,
)
from crawlers.text.articles import one_line, post_to_text
from crawlers.web.fetcher import Fetched, Fetcher, decode

SITE = "hackernews"
INFO = SourceInfo(
    name=SITE,
    title="Hacker News: stories and the comments on them",
    licence="LicenseRef-unknown",
    language="en",
    category="discussion",
    sites={SITE: "https://hn.algolia.com"},
    request_interval_s=1.0,  # 10,000 requests an hour are allowed per IP address
    monthly_bytes=4_000_000,
    whole_months=None,
)
MAX_HITS = 1_000  # per query
WINDOW_S = 12 * 3600  # initial length of a time window; 12 hours have about 500 stories in 2026
MAX_WINDOWS = 2_000  # of a month, halves included; a month of 2026 needs about 100
KINDS = {"ask_hn": "ask", "show_hn": "show"}  # category by tag; else "story"
_EMPTIED = {"[dead]", "[deleted]", "[flagged]"}
_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True)
class Story:
    """A story in a search result; ``num_comments`` includes replies to comments."""

    id: int
    title: str
    text: str
    kind: str
    created_at: dt.datetime
    num_comments: int
    retrieved_at: dt.datetime

    @property
    def native_id(self) -> str:
        """Return the story's number as text."""
        return str(self.id)


Comment = tuple[dt.datetime, int, str]  # direct comment on a story: time, number, text


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield stories by time and story number; sampled crawls use a seeded random order."""
    stories: dict[str, Story] = {}
    dropped: set[str] = set()
    for row, given_at in _list_stories(month, context.fetcher):
        item = _read_story(row, given_at, month)
        if item.native_id in stories or item.native_id in dropped:
            yield Repeat(item.native_id, "in two windows of the list")
        elif isinstance(item, Drop):
            dropped.add(item.native_id)
            yield item
        else:
            stories[item.native_id] = item
    ordered = sorted(stories.values(), key=lambda story: (story.created_at, story.id))
    yield from context.sample(
        ordered,
        lambda story: story.native_id,
        lambda story: [_fetch_story(story, month, context.fetcher)],
    )


def _list_stories(month: Period, fetcher: Fetcher) -> Iterator[tuple[Fields, dt.datetime]]:
    """Yield the month's search results and their times; windows that are too full are halved."""
    first, end = (int(moment.timestamp()) for moment in (month.start, month.end))
    windows = [(start, min(start + WINDOW_S, end)) for start in range(first, end, WINDOW_S)]
    windows.reverse()
    num_searched = 0
    while windows:
        start, stop = windows.pop()
        num_searched += 1
        if num_searched > MAX_WINDOWS:
            raise SourceChanged(f"{SITE}: {month} needs more than {MAX_WINDOWS} lists of stories")
        hits, total, given_at = _search(start, stop, fetcher)
        if len(hits) >= MAX_HITS or total > len(hits):
            if stop - start <= 1:
                raise SourceChanged(
                    f"{SITE}: {total} stories in the second {start}, and {len(hits)} of them are "
                    f"given; expected fewer than {MAX_HITS} in every second"
                )
            middle = (start + stop) // 2
            windows += [(middle, stop), (start, middle)]  # the earlier half is popped first
        else:
            yield from ((hit, given_at) for hit in hits)


def _search(start: int, stop: int, fetcher: Fetcher) -> tuple[list[Fields], int, dt.datetime]:
    """Return the stories of a window (in seconds since 1970), their total number, and the time."""
    params: dict[str, str | int] = {
        "tags": "story",
        "numericFilters": f"created_at_i>={start},created_at_i<{stop}",
        "hitsPerPage": MAX_HITS,
        "page": 0,
    }
    try:
        page = fetcher.get(SITE, "/api/v1/search_by_date", params, is_busy=_is_busy)
    except ItemUnavailable as error:  # the month cannot be crawled without this list
        kind = AccessRefused if error.reason == "robots" else SourceUnavailable
        raise kind(f"{SITE}: a list of the month is unavailable: {error}") from error
    response = Fields.of(f"{SITE}: stories from {start} to {stop}", page.json())
    hits = response.need("hits", response.rows("hits"), "a list of stories")
    total = response.need("nbHits", response.integer("nbHits"), "their number")
    return hits, total, page.retrieved_at


def _is_busy(page: Fetched) -> bool:
    """Return True for a response that means a temporary failure: an error, or missing results."""
    response = Fields.of(SITE, decode(page))
    hits = response.rows("hits")
    if hits is None:
        return response.integer("status") in {429, 500, 503}
    return not hits and response.integer("nbHits") not in {0, None}


def _read_story(row: Fields, retrieved_at: dt.datetime, month: Period) -> Story | Drop:
    """Convert a search result to a Story, or to a Drop with the reason."""
    number = row.text("objectID")
    if number is None or not _NUMBER.fullmatch(number):
        return Drop(row.where, "parse_error", f"expected a number as objectID, got {number!r:.50}")
    created_at = row.epoch("created_at_i")
    title = row.text("title")
    if created_at is None:
        return Drop(number, "no_date", "created_at_i is no time")
    if created_at not in month:
        return Drop(number, "outside_month", created_at.isoformat())
    if title is None or title in _EMPTIED or _is_gone(row):
        return Drop(number, "deleted", "no title")
    text = _text(row, "story_text")
    num_comments = row.integer("num_comments")
    if num_comments is None:
        num_comments = 1  # assume comments if unknown
    if not text and not num_comments:
        return Drop(number, "empty", "a link without comments")
    tags = row.texts("_tags")
    kind = next((KINDS[tag] for tag in KINDS if tag in tags), "story")
    return Story(int(number), one_line(title), text, kind, created_at, num_comments, retrieved_at)


def _is_gone(item: Fields) -> bool:
    return bool(item.boolean("deleted") or item.boolean("dead"))


def _text(item: Fields, name: str) -> str:
    markup = item.text(name)
    return "" if markup is None or markup.strip() in _EMPTIED else post_to_text(markup)


def _fetch_story(story: Story, month: Period, fetcher: Fetcher) -> Document | Drop | Failure:
    """Return a story as a document with its comments; a story without any needs no request."""
    if not story.num_comments:
        return _document(story, [], story.retrieved_at)
    try:
        page = fetcher.get(SITE, f"/api/v1/items/{story.id}")
        record = page.json()
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(story.native_id, error)
    except SourceChanged as error:
        return Drop(story.native_id, "parse_error", str(error))
    item = Fields.of(f"{SITE}: {story.native_id}", record)
    if record is None or _is_gone(item):
        return Drop(story.native_id, "deleted", "the story's own record is empty")
    children = item.rows("children")
    if children is None:
        return Drop(story.native_id, "parse_error", f"{page.url} has no list of children")
    return _document(story, _read_comments(children, month), page.retrieved_at)


def _read_comments(children: Sequence[Fields], month: Period) -> list[Comment]:
    """Return the comments from before the end of the month, by time; each number counts once."""
    comments: dict[int, Comment] = {}
    for child in children:
        number = child.integer("id")
        created_at = child.epoch("created_at_i")
        if _is_gone(child) or number is None or created_at is None or created_at >= month.end:
            continue
        text = _text(child, "text")
        if text:
            comments[number] = (created_at, number, text)
    return sorted(comments.values())


def _document(
    story: Story, comments: Sequence[Comment], retrieved_at: dt.datetime
) -> Document | Drop:
    """Join a story's text and comments to a document; return a Drop if there is no text."""
    texts = [story.text, *(text for _, _, text in comments)]
    if not any(texts):
        return Drop(story.native_id, "empty", "neither a text nor a comment of the month")
    url = f"https://news.ycombinator.com/item?id={story.id}"
    return Document(
        native_id=story.native_id,
        version_id=None,
        text="\n\n".join(text for text in texts if text),
        is_plain=True,
        title=story.title,
        url=url,
        event_time=story.created_at,
        date_kind="created",
        text_as_of=max([story.created_at, *(created_at for created_at, _, _ in comments)]),
        retrieved_at=retrieved_at,
        licence=INFO.licence,
        attribution=f"users of Hacker News: {url}",
        cluster_id=f"story:{story.id}",
        category=story.kind,
        extra={"has_text": bool(story.text), "num_comments": len(comments)},
    )
