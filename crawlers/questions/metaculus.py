"""Metaculus: questions of a community of forecasters.

A question belongs to the month in which its answer was set on the site (``resolution_set_time``).
The answer may have been known long before (``actual_resolve_time``). The API
(https://www.metaculus.com/api/) requires a token and allows 1,000 requests an hour. It is made for
programs, so the rules of robots.txt for page crawlers do not apply. The API lists posts; a post is
one question or a group of questions. Posts are sorted by publication. So a post resolved during a
crawl moves other posts to later pages only: no post is missed. Questions with yes/no or listed
options are kept. Groups stay open until all their questions are resolved, so open groups are read,
too. Annulled and ambiguous questions are void. The community's forecast is kept if made before
closing and resolution. Redistribution of texts requires permission (api-requests@metaculus.com).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from core.corpus.questions import CrowdForecast, Question
from core.errors import SourceChanged, TokenRefused
from core.month import Month
from crawlers.contract import Drop
from crawlers.questions.contract import (
    YES_NO,
    Found,
    Listing,
    QuestionContext,
    QuestionSourceInfo,
    forecasts,
    instant_of_s,
    know_all_from,
    month_of,
    number,
    text,
    texts,
)
from crawlers.web.fetcher import Fetched, Fetcher, decode, read_time

SITE = "metaculus"
PATH = "/api/posts/"
INFO = QuestionSourceInfo(
    name=SITE,
    title="Metaculus: questions of a community of forecasters",
    licence="LicenseRef-Metaculus",
    language="en",
    category="forecasting",
    sites={SITE: "https://www.metaculus.com"},
    request_interval_s=3.6,  # 1,000 requests an hour are allowed
    robots_exempt_paths=(PATH,),
    first_month=Month("2015-12"),
    needs_token=True,
    token_from="in the settings of an account at https://www.metaculus.com",  # noqa: S106
)
PAGE_SIZE = 100  # posts per page, the maximum that the API allows
_GROUPS = "group_of_questions"
# Filters (statuses, types) of the two lists that are read: resolved posts, unresolved groups.
_LISTS = ((("resolved",), ("binary", "multiple_choice", _GROUPS)), (("open", "closed"), (_GROUPS,)))
_VOID = {"annulled", "ambiguous"}

Row = dict[str, Any]


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the questions resolved in the months, oldest post first; open groups come last."""
    headers = _headers(context.fetcher)
    listing = Listing(context.fetcher, SITE, know_all_from(months), headers)
    for post in _list_posts(listing):
        for row in _questions_of(post):
            if row.get("type") not in {"binary", "multiple_choice"}:
                context.passed_over["not_a_choice"] += 1
            elif text(row.get("resolution")) is None:
                context.passed_over["open"] += 1
            elif month := month_of(_set_at(row), months, context):
                yield month, _read(str(row["id"]), row, post)


def _headers(fetcher: Fetcher) -> dict[str, str]:
    token = fetcher.token(SITE)
    if token is None:
        raise TokenRefused(f"{SITE} gives nothing without a token; set TIDEMARK_TOKENS__METACULUS")
    return {"Authorization": f"Token {token.get_secret_value()}"}


def _list_posts(listing: Listing) -> Iterator[Row]:
    for statuses, types in _LISTS:
        many = [("statuses", each) for each in statuses]
        many += [("forecast_type", each) for each in types]
        path, offset = f"{PATH}?{urlencode(many)}", 0
        while True:
            params: dict[str, str | int] = {
                "include_descriptions": "true", "limit": PAGE_SIZE, "offset": offset,
                "order_by": "published_at", "with_cp": "true",
            }  # fmt: skip
            answer = listing.page(path, params, _is_busy)
            page = decode(answer)
            if not all(type(_object(post).get("id")) is int for post in page["results"]):
                raise SourceChanged(f"{SITE}: {answer.url}: expected posts with a number as id")
            yield from page["results"]
            if page["next"] is None:
                break
            offset += len(page["results"])


def _is_busy(answer: Fetched) -> bool:
    """Return True if a page has no post, so that it is requested again."""
    page = decode(answer)
    results = page.get("results") if isinstance(page, dict) else None
    return not isinstance(results, list) or not results or "next" not in page


def _questions_of(post: Row) -> list[Row]:
    group = _object(post.get(_GROUPS))
    rows = group.get("questions") if group else [post.get("question")]
    found = map(_object, rows if isinstance(rows, list) else [])
    return [row for row in found if type(row.get("id")) is int]


def _set_at(row: Row) -> dt.datetime | None:
    return read_time(row.get("resolution_set_time")) or read_time(row.get("actual_resolve_time"))


def _read(name: str, row: Row, post: Row) -> Question | Drop:
    title = _title(row, post)
    opened_at = read_time(row.get("open_time")) or read_time(post.get("open_time"))
    if title is None or opened_at is None:
        return Drop(name, "no_date" if title else "parse_error", "no open_time, or no title")
    options = YES_NO if row["type"] == "binary" else texts(row.get("options"))
    names = ("yes", "no") if row["type"] == "binary" else options
    history, resolution = row.get("options_history"), row["resolution"]
    if isinstance(history, list) and len(history) > 1:
        return Drop(name, "edited_later", "its options were changed while it ran")
    if resolution not in (*names, *_VOID):
        return Drop(name, "parse_error", f"resolved as {resolution!r:.80}, which is no option")
    answer = names.index(resolution) if resolution in names else None
    texts_from = _object(post.get(_GROUPS)) or row  # questions of a group share the group's texts
    return Question(
        question_id=name,
        source=SITE,
        url=f"https://www.metaculus.com/questions/{post['id']}/",
        title=title,
        background=text(row.get("description")) or text(texts_from.get("description")),
        resolution_criteria=_criteria(row) or _criteria(texts_from),
        options=options,
        answer_index=answer,
        created_at=read_time(row.get("created_at")),
        opened_at=opened_at,
        closed_at=read_time(row.get("actual_close_time")),
        resolved_at=read_time(row.get("actual_resolve_time")) or _set_at(row),
        status="void" if answer is None else "resolved",
        tags=_tags(post),
        crowd_forecast=_crowd(row, options),
        licence=INFO.licence,
    )


def _title(row: Row, post: Row) -> str | None:
    """Return a title; for a question of a group, such as ``2027``, add the group's title."""
    own, whole, label = (
        text(each) for each in (row.get("title"), post.get("title"), row.get("label"))
    )
    if not isinstance(post.get(_GROUPS), dict) or not whole:
        return own or whole
    return own if own and len(own) > len(whole) else f"{whole} ({label or own})"


def _criteria(row: Row) -> str | None:
    parts = (text(row.get("resolution_criteria")), text(row.get("fine_print")))
    return "\n\n".join(part for part in parts if part) or None


def _tags(post: Row) -> tuple[str, ...]:
    projects = _object(post.get("projects"))
    kinds = [projects.get(kind) for kind in ("category", "tag")]
    named = [each for kind in kinds if isinstance(kind, list) for each in kind]
    return tuple(dict.fromkeys(texts([_object(each).get("name") for each in named])))


def _object(value: object) -> Row:
    return value if isinstance(value, dict) else {}


def _crowd(row: Row, options: tuple[str, ...]) -> tuple[CrowdForecast, ...]:
    found = row
    for key in ("aggregations", "recency_weighted", "latest"):
        found = _object(found.get(key))
    given_at, centers = instant_of_s(found.get("start_time")), found.get("centers")
    values = [number(each) for each in centers] if isinstance(centers, list) else []
    if row["type"] == "binary" and len(values) == 1 and values[0] is not None:
        values.append(1 - values[0])
    ends = [read_time(row.get(key)) for key in ("actual_close_time", "actual_resolve_time")]
    is_late = given_at is None or any(end and given_at > end for end in ends)
    known = [each for each in values if each is not None and 0 <= each <= 1]
    if is_late or len(known) != len(options):
        return ()
    return forecasts(options, known, given_at)
