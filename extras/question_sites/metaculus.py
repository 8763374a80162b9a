"""Metaculus: questions of a community of forecasters.

A question belongs to the month in which its answer was set on the site (``resolution_set_time``).
The answer may have been known long before (``actual_resolve_time``). The API
(https://www.metaculus.com/api/) requires a token. It is made for programs, so the rules of
robots.txt for page crawlers do not apply. Its terms forbid to evaluate models on its data without
written permission. So the source requires a recorded permission. Since 2026-03, an ordinary token
sees text and answer of a closed question only if its owner predicted on it. What is withheld is
null, and such a question is dropped (``permission``).

The API lists posts; a post is one question or a group of questions. Posts are sorted by
publication. So a post resolved during a crawl moves other posts to later pages only: no post is
missed. The link to the next page is never null, and a list ends with an empty page. Questions with
yes/no or listed options are kept. Groups stay open until all their questions are resolved, so open
groups are read, too. Annulled and ambiguous questions are void. The community's forecast is kept if
made before closing and resolution.
"""

from __future__ import annotations

import datetime as dt
import functools
import logging
import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from core.corpus.questions import CrowdForecast, Question
from core.errors import SourceChanged, SourceUnavailable, TokenRefused
from core.month import Month
from crawlers.apis.fields import Fields, show
from crawlers.contract import Drop, Repeat
from crawlers.questions.contract import (
    YES_NO,
    Found,
    Listing,
    QuestionContext,
    QuestionSourceInfo,
    forecasts,
    know_all_from,
    month_of,
)
from crawlers.web.fetcher import Fetched, Fetcher, decode

SITE = "metaculus"
PATH = "/api/posts/"
INFO = QuestionSourceInfo(
    name=SITE,
    title="Metaculus: questions of a community of forecasters",
    licence="LicenseRef-Metaculus",
    language="en",
    category="forecasting",
    sites={SITE: "https://www.metaculus.com"},
    request_interval_s=3.6,  # 1,000 requests an hour are allowed, and 8 in 10 s
    robots_exempt_paths=(PATH,),
    first_month=Month("2015-12"),
    needs_token=True,
    token_from="in the settings of an account at https://www.metaculus.com",  # noqa: S106
    permission=(
        "its terms of use forbid to train or evaluate AI models on its data without written "
        "permission; ask Metaculus (api-requests@metaculus.com), also for the texts and answers "
        "of questions that your account did not predict on, which it withholds"
    ),
)
PAGE_SIZE = 100  # posts per page, the maximum that the API allows
_GROUPS = "group_of_questions"
_CHOICES = ("binary", "multiple_choice")
# Filters (statuses, types) of the two lists that are read: resolved posts, unresolved groups.
_LISTS = ((("resolved",), (*_CHOICES, _GROUPS)), (("open", "closed"), (_GROUPS,)))
_VOID = {"annulled", "ambiguous"}
_log = logging.getLogger(__name__)


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the questions resolved in the months, oldest post first; open groups come last."""
    headers = _headers(context.fetcher)
    listing = Listing(context.fetcher, SITE, know_all_from(months), headers)
    seen: dict[str, Month | None] = {}  # question -> its month, if it is one of ``months``
    num_withheld = 0
    for post in _list_posts(listing):
        for row in _questions_of(post):
            name = _id_of(row) or f"post {_id_of(post)}"
            month = seen.get(name)
            if name not in seen:
                found = _examine(name, row, post, months, context)
                seen[name] = found[0] if found else None
                if found:
                    num_withheld += getattr(found[1], "reason", "") == "permission"
                    yield found
            elif month:
                yield month, Repeat(name, "listed before")
    if num_withheld:
        _log.warning("%s withholds %d questions from the token's account", SITE, num_withheld)


def _headers(fetcher: Fetcher) -> dict[str, str]:
    token = fetcher.token(SITE)
    if token is None:
        raise TokenRefused(f"{SITE} gives nothing without a token; set TIDEMARK_TOKENS__METACULUS")
    return {"Authorization": f"Token {token.get_secret_value()}"}


def _list_posts(listing: Listing) -> Iterator[Fields]:
    """Yield the posts of each list, page by page, up to an end that is verified."""
    for statuses, types in _LISTS:
        many = [("statuses", each) for each in statuses]
        many += [("forecast_type", each) for each in types]
        path = f"{PATH}?{urlencode(many)}"
        offset = 0
        is_full = True
        passed: set[str | None] = set()
        while True:
            # There are always resolved posts, so an empty first page of them is a failure.
            may_be_empty = offset > 0 or statuses != ("resolved",)
            page = _page(listing, path, offset, PAGE_SIZE, may_be_empty)
            posts = page.rows("results") or []
            names = {_id_of(post) for post in posts}
            if None in names or offset > 2 * len(passed) + 1_000:
                raise SourceChanged(
                    f"{SITE}: expected posts with a number as id, each on one page, after {offset} "
                    f"of {path}, got {show([post.values for post in posts])}"
                )
            yield from posts
            if not posts and is_full:
                _require_end(listing, path, offset)
            passed |= names
            offset = offset + len(posts)
            is_full = len(posts) >= _limit_of(page)
            if not posts or (not is_full and page.values.get("next") is None):
                break


def _page(listing: Listing, path: str, offset: int, limit: int, may_be_empty: bool) -> Fields:
    """Return a page of a list of posts."""
    params: dict[str, str | int] = {
        "include_descriptions": "true", "limit": limit, "offset": offset,
        "order_by": "published_at", "with_cp": "true",
    }  # fmt: skip
    is_busy = functools.partial(_is_busy, may_be_empty=may_be_empty)
    return Fields.of(SITE, decode(listing.page(path, params, is_busy)))


def _is_busy(answer: Fetched, may_be_empty: bool) -> bool:
    """Return True if an answer is no page, so that it is requested again."""
    results = Fields.of(SITE, decode(answer)).rows("results")
    return results is None or not (results or may_be_empty)


def _limit_of(page: Fields) -> int:
    """Return how many posts a full page has, by its link to the next page."""
    found = re.search(r"[?&]limit=([0-9]{1,6})(?:&|$)", page.text("next") or "")
    return int(found[1]) if found else PAGE_SIZE


def _require_end(listing: Listing, path: str, offset: int) -> None:
    """Raise SourceUnavailable if posts follow an empty page.

    An empty page after a full one may be a failure of the site. So the post before it is requested
    again, together with the next one.
    """
    listing.fetcher.forget(last_only=True)
    page = _page(listing, path, max(offset - 1, 0), 2, may_be_empty=offset == 0)
    if len(page.rows("results") or []) > min(offset, 1):
        raise SourceUnavailable(
            f"{SITE}: the page after {offset} posts of {path} was empty, though posts follow; "
            "run the same command again later"
        )


def _questions_of(post: Fields) -> list[Fields]:
    """Return the questions of a post; one without fields for a notebook or the like."""
    return post.inner(_GROUPS).rows("questions") or [post.inner("question")]


def _id_of(row: Fields) -> str | None:
    number = row.integer("id", low=1)
    return None if number is None else str(number)


def _examine(
    name: str, row: Fields, post: Fields, months: Sequence[Month], context: QuestionContext
) -> tuple[Month, Found] | None:
    """Return a question with its month; None if it belongs to none of them, which is counted."""
    kind = row.text("type")
    answer = row.text("resolution")
    has_question = not post.values.keys().isdisjoint({"question", _GROUPS})
    is_withheld = answer is None and has_question and _is_resolved(row, post)
    if is_withheld and (kind is None or kind in _CHOICES):
        moment = _set_at(row) or row.time("actual_close_time")
        month = month_of(moment, months, context) if moment else max(months)
        detail = "its answer is withheld from accounts that did not predict on it"
        return (month, Drop(name, "permission", detail)) if month else None
    if kind not in _CHOICES:
        context.passed_over["not_a_choice"] += 1
    elif answer is None:
        context.passed_over["open"] += 1
    else:
        month = month_of(_set_at(row), months, context)
        return (month, _read(name, row, post)) if month else None
    return None


def _is_resolved(row: Fields, post: Fields) -> bool:
    status = row.text("status") or post.text("status")
    return status == "resolved" or _set_at(row) is not None


def _set_at(row: Fields) -> dt.datetime | None:
    return row.time("resolution_set_time") or row.time("actual_resolve_time")


def _read(name: str, row: Fields, post: Fields) -> Question | Drop:
    """Return a question of a post, or why it is left out."""
    title = _title(row, post)
    opened_at = row.time("open_time") or post.time("open_time")
    if title is None or opened_at is None:
        return Drop(name, "no_date" if title else "parse_error", "no open_time, or no title")
    is_binary = row.text("type") == "binary"
    answer = row.text("resolution")
    options = YES_NO if is_binary else row.texts("options")
    names = ("yes", "no") if is_binary else options
    if len(row.rows("options_history") or []) > 1:
        return Drop(name, "edited_later", "its options were changed while it ran")
    if not is_binary and len(options) < len(row.rows("options") or []):
        return Drop(name, "parse_error", "an option is blank, or no text")
    if answer not in (*names, *_VOID):
        return Drop(name, "parse_error", f"resolved as {show(answer)}, which is no option")
    index = names.index(answer) if answer in names else None
    group = post.inner(_GROUPS)  # its questions share its texts
    return Question(
        question_id=name,
        source=SITE,
        url=f"https://www.metaculus.com/questions/{_id_of(post)}/",
        title=title,
        background=row.text("description") or group.text("description"),
        resolution_criteria=_criteria(row) or _criteria(group),
        options=options,
        answer_index=index,
        created_at=row.time("created_at"),
        opened_at=opened_at,
        closed_at=row.time("actual_close_time"),
        resolved_at=row.time("actual_resolve_time") or _set_at(row),
        status="void" if index is None else "resolved",
        tags=_tags(post),
        crowd_forecast=_crowd(row, options),
        licence=INFO.licence,
    )


def _title(row: Fields, post: Fields) -> str | None:
    """Return a title; for a question of a group, such as ``2027``, add the group's title."""
    own = row.text("title")
    whole = post.text("title")
    label = row.text("label")
    if not post.inner(_GROUPS).values or not whole:
        return own or whole
    if own and len(own) > len(whole):
        return own
    return f"{whole} ({label or own})" if label or own else whole


def _criteria(row: Fields) -> str | None:
    parts = (row.text("resolution_criteria"), row.text("fine_print"))
    return "\n\n".join(part for part in parts if part) or None


def _tags(post: Fields) -> tuple[str, ...]:
    projects = post.inner("projects")
    rows = [*(projects.rows("category") or []), *(projects.rows("tag") or [])]
    return tuple(dict.fromkeys(name for row in rows if (name := row.text("name"))))


def _crowd(row: Fields, options: tuple[str, ...]) -> tuple[CrowdForecast, ...]:
    """Return the crowd's last forecast before the question closed; none if it is incomplete."""
    latest = row.inner("aggregations").inner("recency_weighted").inner("latest")
    given_at = latest.epoch("start_time")
    values = latest.numbers("centers")
    if row.text("type") == "binary" and len(values) == 1 and values[0] is not None:
        values.append(1 - values[0])
    ends = [row.time(name) for name in ("actual_close_time", "actual_resolve_time")]
    is_late = given_at is None or any(end and given_at > end for end in ends)
    known = [each for each in values if each is not None and 0 <= each <= 1]
    if is_late or len(known) != len(options):
        return ()
    return forecasts(options, known, given_at)
