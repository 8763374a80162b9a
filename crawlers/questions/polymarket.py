"""Polymarket: questions (markets) on which people bet money (read only, no account).

A market belongs to the month in which it was settled: the later of ``closedTime`` and
``umaEndDate``. The latter is the end of the vote on the answer (by the oracle UMA). The list
(https://docs.polymarket.com, ``/markets/keyset``; the older endpoint is incomplete) is sorted by
closing time, latest first. So a crawl stops at markets that closed LONGEST_VOTE before the earliest
month. A settled market has prices of 1 and 0; with other prices (50/50) it is void. Markets below
MIN_VOLUME_USD are left out: most are created by programs. No crowd forecast is kept, because the
list has final prices only. No licence is stated, so texts are for local use only.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from core.corpus.questions import Question
from core.errors import SourceChanged
from core.month import Month
from crawlers.contract import Drop
from crawlers.questions.contract import (
    Found,
    Listing,
    QuestionContext,
    QuestionSourceInfo,
    know_all_from,
    month_of,
    number,
    text,
    texts,
)
from crawlers.web.fetcher import Fetched, decode, read_time

SITE = "polymarket"
INFO = QuestionSourceInfo(
    name=SITE,
    title="Polymarket: questions with money on them",
    licence="LicenseRef-unknown",
    language="en",
    category="forecasting",
    sites={SITE: "https://gamma-api.polymarket.com"},
    request_interval_s=0.5,  # 300 requests in ten seconds are allowed per IP address
    first_month=Month("2020-10"),
)
PAGE_SIZE = 100
MIN_VOLUME_USD = 1_000
UNORDERED = dt.timedelta(days=1)  # maximum deviation of the list from the order of closing times
# Maximum time from a market's closing to the end of the vote; most votes end within a week.
LONGEST_VOTE = dt.timedelta(days=30)
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)

Row = dict[str, Any]


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the questions settled in the months, sorted by closing time, latest first."""
    listing = Listing(context.fetcher, SITE, know_all_from(months))
    for row in _list_markets(listing, min(months).start - LONGEST_VOTE):
        settled_at = _settled_at(row)
        if _is_undecided(row):
            context.passed_over["open"] += 1
        elif (month := month_of(settled_at, months, context)) and settled_at:
            yield month, _read(row, settled_at)


def _list_markets(listing: Listing, until: dt.datetime) -> Iterator[Row]:
    params: dict[str, str | int] = {
        "closed": "true", "include_tag": "true", "volume_num_min": MIN_VOLUME_USD,
        "limit": PAGE_SIZE, "order": "closedTime", "ascending": "false",
    }  # fmt: skip
    last: dt.datetime | None = None
    while True:
        answer = listing.page("/markets/keyset", params, _is_busy)
        page = decode(answer)
        for row in page["markets"]:
            closed_at = read_time(row.get("closedTime")) if _is_market(row) else None
            if not _is_market(row) or (last and closed_at and closed_at > last + UNORDERED):
                raise SourceChanged(
                    f"{SITE}: {answer.url}: expected markets, the last closed first, "
                    f"got {row!r:.200} after {last}"
                )
            last = min(filter(None, (last, closed_at)), default=None)
            yield row
        cursor = page.get("next_cursor")
        if not cursor or (last and last < until):
            return
        if cursor == params.get("after_cursor"):
            raise SourceChanged(f"{SITE}: the page after {cursor} names itself as the next")
        params["after_cursor"] = cursor


def _is_busy(answer: Fetched) -> bool:
    """Return True if a page has no market, so that it is requested again."""
    page = decode(answer)
    markets = page.get("markets") if isinstance(page, dict) else None
    return not isinstance(markets, list) or not markets


def _is_market(row: object) -> bool:
    return isinstance(row, dict) and _ID.fullmatch(str(row.get("id"))) is not None


def _settled_at(row: Row) -> dt.datetime | None:
    moments = (read_time(row.get("closedTime")), read_time(row.get("umaEndDate")))
    return max((moment for moment in moments if moment), default=None)


def _is_undecided(row: Row) -> bool:
    """Return True if a market is open or its vote is not over; no status means no vote."""
    return not row.get("closed") or row.get("umaResolutionStatus") not in {"resolved", "", None}


def _read(row: Row, settled_at: dt.datetime) -> Question | Drop:
    name, title = str(row["id"]), text(row.get("question"))
    outcomes = _inner_list(row.get("outcomes"))
    prices = [
        price for price in map(number, _inner_list(row.get("outcomePrices"))) if price is not None
    ]
    if title is None or len(outcomes) < 2 or len(outcomes) != len(prices):
        return Drop(name, "parse_error", "expected a question, and as many prices as outcomes")
    opened_at = read_time(row.get("startDate")) or read_time(row.get("createdAt"))
    if opened_at is None:
        return Drop(name, "no_date", "neither startDate nor createdAt")
    answer = prices.index(1.0) if sorted(prices)[-2:] == [0.0, 1.0] else None
    is_settled = row.get("umaResolutionStatus") == "resolved" or len(set(prices)) == 1
    if answer is None and (not is_settled or not any(prices)):
        return Drop(name, "unknown_format", f"prices {prices} tell no answer")
    return Question(
        question_id=name,
        source=SITE,
        url=f"https://polymarket.com/market/{row['slug']}" if text(row.get("slug")) else None,
        title=title,
        resolution_criteria=text(row.get("description")),
        options=tuple(outcomes),
        answer_index=answer,
        created_at=read_time(row.get("createdAt")),
        opened_at=opened_at,
        closed_at=read_time(row.get("closedTime")),
        resolved_at=settled_at,
        status="void" if answer is None else "resolved",
        tags=_tags(row),
        licence=INFO.licence,
    )


def _inner_list(value: object) -> list[str]:
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return []
    return found


def _tags(row: Row) -> tuple[str, ...]:
    """Return the labels of a market's tags; older markets have a category instead."""
    tags = row.get("tags")
    known = [tag for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    labels = texts([*(tag.get("label") for tag in known), row.get("category")])
    return tuple(dict.fromkeys(labels))
