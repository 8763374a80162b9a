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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    Repeat,
    SourceInfo,
    missing_item,
    read_epoch,
)
from crawlers.text.articles import one_line, post_to_text
from crawlers.web.fetcher import Fetched, Fetcher

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
)
MAX_HITS = 1_000  # per query
WINDOW_S = 12 * 3600  # initial length of a time window; 12 hours have about 500 stories in 2026
KINDS = {"ask_hn": "ask", "show_hn": "show"}  # category by tag; else "story"
_EMPTIED = {"[dead]", "[deleted]", "[flagged]"}

Row = dict[str, Any]


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


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
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


def _list_stories(month: Month, fetcher: Fetcher) -> Iterator[tuple[Row, dt.datetime]]:
    first, end = (int(moment.timestamp()) for moment in (month.start, month.end))
    windows = [(start, min(start + WINDOW_S, end)) for start in range(first, end, WINDOW_S)]
    windows.reverse()
    while windows:
        start, stop = windows.pop()
        answer, given_at = _search(start, stop, fetcher)
        hits, total = answer["hits"], answer["nbHits"]
        if len(hits) >= MAX_HITS or total > len(hits):
            if stop - start <= 1:
                raise SourceChanged(
                    f"{SITE}: {total} stories in the second {start}, and {len(hits)} of them are "
                    f"given; expected fewer than {MAX_HITS} in every second"
                )
            middle = (start + stop) // 2
            windows += [(middle, stop), (start, middle)]
        else:
            yield from ((hit, given_at) for hit in hits if isinstance(hit, dict))


def _search(start: int, stop: int, fetcher: Fetcher) -> tuple[Row, dt.datetime]:
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
        raise kind(f"{SITE}: a list that the month needs cannot be had: {error}") from error
    answer = page.json()
    if not _is_answer(answer):
        raise SourceChanged(
            f"{SITE}: {page.url}: expected hits and their number, got {answer!r:.200}"
        )
    return answer, page.retrieved_at


def _is_answer(answer: object) -> bool:
    return (
        isinstance(answer, dict)
        and isinstance(answer.get("hits"), list)
        and type(answer.get("nbHits")) is int
    )


def _is_busy(page: Fetched) -> bool:
    answer = page.json()
    if not isinstance(answer, dict):
        return False
    is_anomalous = answer.get("hits") == [] and answer.get("nbHits") not in {0, None}
    return is_anomalous or ("hits" not in answer and answer.get("status") in {429, 500, 503})


def _read_story(row: Row, given_at: dt.datetime, month: Month) -> Story | Drop:
    number = row.get("objectID")
    if not isinstance(number, str) or not (number.isascii() and number.isdecimal()):
        return Drop(f"{number!s:.20}", "parse_error", "expected a number as objectID")
    created_at = read_epoch(row.get("created_at_i"))
    if created_at is None:
        return Drop(number, "no_date", f"created_at_i is {row.get('created_at_i')!r:.50}")
    if created_at not in month:
        return Drop(number, "outside_month", created_at.isoformat())
    title, comments = row.get("title"), row.get("num_comments")
    if not isinstance(title, str) or title in _EMPTIED or row.get("deleted") or row.get("dead"):
        return Drop(number, "deleted", "no title")
    text = _text(row.get("story_text"))
    num_comments = comments if type(comments) is int else 1  # assume comments if unknown
    if not text and not num_comments:
        return Drop(number, "empty", "a link without comments")
    tags = row.get("_tags")
    tagged = [KINDS[tag] for tag in KINDS if isinstance(tags, list) and tag in tags]
    kind = next(iter(tagged), "story")
    return Story(int(number), one_line(title), text, kind, created_at, num_comments, given_at)


def _text(markup: object) -> str:
    if not isinstance(markup, str) or markup.strip() in _EMPTIED:
        return ""
    return post_to_text(markup)


def _fetch_story(story: Story, month: Month, fetcher: Fetcher) -> Document | Drop | Failure:
    if not story.num_comments:
        return _document(story, [], story.retrieved_at)
    try:
        page = fetcher.get(SITE, f"/api/v1/items/{story.id}")
        item = page.json()
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(story.native_id, error)
    except SourceChanged as error:
        return Drop(story.native_id, "parse_error", str(error))
    if item is None or (isinstance(item, dict) and (item.get("deleted") or item.get("dead"))):
        return Drop(story.native_id, "deleted", "the story's own record is empty")
    children = item.get("children") if isinstance(item, dict) else None
    if not isinstance(children, list):
        return Drop(story.native_id, "parse_error", f"{page.url} has no list of children")
    return _document(story, _read_comments(children, month), page.retrieved_at)


def _read_comments(children: Sequence[object], month: Month) -> list[Comment]:
    found: dict[int, Comment] = {}
    for child in children:
        if not isinstance(child, dict) or child.get("deleted") or child.get("dead"):
            continue
        number, created_at = child.get("id"), read_epoch(child.get("created_at_i"))
        text = _text(child.get("text"))
        if type(number) is int and created_at is not None and created_at < month.end and text:
            found[number] = (created_at, number, text)
    return sorted(found.values())


def _document(
    story: Story, comments: Sequence[Comment], retrieved_at: dt.datetime
) -> Document | Drop:
    texts = [story.text, *(text for _, _, text in comments)]
    if not any(texts):
        return Drop(story.native_id, "empty", "neither a text nor a comment of the month")
    url = f"https://news.ycombinator.com/item?id={story.id}"
    return Document(
        native_id=story.native_id,
        version_id=None,
        text="\n\n".join(text for text in texts if text),
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
