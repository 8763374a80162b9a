"""Polymarket: questions (markets) on which people bet money (read only, no account).

A market belongs to the month in which it was settled: the later of ``closedTime`` and
``umaEndDate``. The latter is the end of the vote on the answer (by the oracle UMA). The list
(https://docs.polymarket.com, ``/markets/keyset``; the older endpoint is incomplete) is sorted by
closing time, latest first. A month's list has only markets that began before the month's end, and
is read to LONGEST_VOTE before the month. A settled market has prices of 1 and 0; with other prices
(50/50) it is void. Markets below MIN_VOLUME_USD are left out: most are created by programs. So are
games of sport, and series on whether a price goes up or down. No crowd forecast is kept, because
the list has final prices only. No licence is stated, so texts are for local use only.

In 2026, about 5,000 markets above MIN_VOLUME_USD close on a day: 1,500 pages a month. The list
ignores filters by closing time. Its filters by scheduled end would miss the many markets that close
earlier, as their event has happened. So a month is sampled by the volume of bets, which is final at
closing: NUM_DRAWN random bands out of NUM_BANDS are read. The bands hold about equally many
markets, and are so narrow that they are as good as a random sample.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Iterator, Sequence

from core.corpus.questions import Question
from core.errors import SourceChanged
from core.month import Month
from crawlers.apis.fields import Fields, load_json, show
from crawlers.contract import Drop
from crawlers.questions.contract import (
    Found,
    Listing,
    QuestionContext,
    QuestionSourceInfo,
    know_all_from,
    month_of,
)
from crawlers.web.fetcher import Fetched, decode

SITE = "polymarket"
PAGE_SIZE = 100
MIN_VOLUME_USD = 1_000
SAMPLED_FROM = Month("2025-10")  # by their ids, earlier months have few enough markets to read all
NUM_BANDS = 640
NUM_DRAWN = 20
MAX_PAGES = 400  # maximum per month, divided equally among its bands
INFO = QuestionSourceInfo(
    name=SITE,
    title="Polymarket: questions with money on them",
    licence="LicenseRef-unknown",
    language="en",
    category="forecasting",
    sites={SITE: "https://gamma-api.polymarket.com"},
    request_interval_s=0.5,  # 300 requests in ten seconds are allowed per IP address
    first_month=Month("2020-10"),
    sample=(
        f"months from {SAMPLED_FROM}: the markets in {NUM_DRAWN} of {NUM_BANDS} bands of volume, "
        f"drawn by the seed; earlier months: all markets with {MIN_VOLUME_USD} USD of bets; "
        "without sport and up-or-down series"
    ),
)
UNORDERED = dt.timedelta(days=1)  # maximum deviation of the list from the order of closing times
LONGEST_VOTE = dt.timedelta(days=7)  # time from closing to the end of the vote; nearly always zero
# Markets of 2020 to 2022 may lack a start. Their lists are cut by the scheduled end instead.
_DATED_FROM = Month("2023-01")
_LONGEST_WAIT = dt.timedelta(days=365)
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
_SLUG = re.compile(r"[\w-]{1,300}", re.ASCII)
_SPORTS = {"sports", "esports", "games"}  # slugs of tags; older markets have a category instead
_OF_GAMES = ("sportsMarketType", "gameStartTime", "gameId")  # fields of markets or their events
_UP_OR_DOWN = re.compile(r"(?:^|-)up-?(?:or-?)?down(?:-|$)", re.IGNORECASE)

Band = tuple[float | None, float | None]  # least and largest volume in USD; None: no limit


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the questions settled in the months, last month first; each band by closing time."""
    for month in sorted(months, reverse=True):
        listing = Listing(context.fetcher, SITE, know_all_from([month]))
        bands = _bands(month, context)
        for band in bands:
            for row in _list_markets(listing, month, band, MAX_PAGES // len(bands)):
                if isinstance(row, Drop):
                    yield month, row
                elif _is_undecided(row):
                    context.passed_over["open"] += 1
                elif month_of(_settled_at(row), [month], context):
                    yield month, _read(row)
        if month >= SAMPLED_FROM:
            detail = f"{NUM_BANDS - NUM_DRAWN} of {NUM_BANDS} bands of volume were not drawn"
            yield month, Drop(f"{month}: other volumes", "sample_cap", detail)


def _bands(month: Month, context: QuestionContext) -> list[Band]:
    if month < SAMPLED_FROM:
        return [(MIN_VOLUME_USD, None)]
    drawn = sorted(range(NUM_BANDS), key=lambda band: context.rank(f"volume band {band}"))
    return [(_edge(band), _edge(band + 1)) for band in sorted(drawn[:NUM_DRAWN])]


def _edge(band: int) -> float | None:
    """Return a band's minimum in USD, if volumes follow a power law with exponent 2/3."""
    if band == NUM_BANDS:
        return None
    return round(float(MIN_VOLUME_USD * (1 - band / NUM_BANDS) ** -1.5), 2)


def _list_markets(
    listing: Listing, month: Month, band: Band, max_pages: int
) -> Iterator[Fields | Drop]:
    """Yield the markets of a band of volume, the last closed first, back to the month."""
    params = _params(month, band)
    name = f"{month}: volumes {band[0]} to {band[1]}"
    last: dt.datetime | None = None
    for _ in range(max_pages):
        may_be_empty = month >= SAMPLED_FROM and "after_cursor" not in params
        is_busy = functools.partial(_is_busy, may_be_empty=may_be_empty)
        answer = listing.page("/markets/keyset", params, is_busy)
        page = Fields.of(f"{SITE}: {answer.url}", decode(answer))
        times = []
        if not page.rows("markets"):
            yield Drop(name, "sample_cap", "this band of volume has no market")
        for row in page.rows("markets") or []:
            closed_at = row.time("closedTime")
            if _id_of(row) is None or (last and closed_at and closed_at - last > UNORDERED):
                raise SourceChanged(
                    f"{SITE}: {answer.url}: expected markets, the last closed first, "
                    f"got {show(row.values)} after {last}"
                )
            times += [closed_at] if closed_at else []
            last = min(filter(None, (last, closed_at)), default=None)
            yield row
        cursor = page.values.get("next_cursor")
        if not cursor or (times and max(times) < month.start - LONGEST_VOTE):
            return
        if not isinstance(cursor, str) or cursor == params.get("after_cursor"):
            raise SourceChanged(f"{SITE}: expected another cursor as the next, got {show(cursor)}")
        params["after_cursor"] = cursor
    if last is None or last >= month.end:
        raise SourceChanged(
            f"{SITE}: {max_pages} pages of {name} end with markets of {last}, after {month}; "
            "expected the list to have only what began before the month's end"
        )
    yield Drop(name, "sample_cap", f"closed before {last}, after {max_pages} pages")


def _params(month: Month, band: Band) -> dict[str, str | int]:
    """Return the parameters of a list of markets that may have closed in the month."""
    is_dated = month >= _DATED_FROM
    limit = month.end if is_dated else month.end + _LONGEST_WAIT
    return {
        "closed": "true", "include_tag": "true", "limit": PAGE_SIZE,
        "order": "closedTime", "ascending": "false",
        "start_date_max" if is_dated else "end_date_max": f"{limit:%Y-%m-%dT%H:%M:%SZ}",
        "volume_num_min": str(band[0]),
        **({} if band[1] is None else {"volume_num_max": str(band[1])}),
    }  # fmt: skip


def _is_busy(answer: Fetched, may_be_empty: bool) -> bool:
    """Return True if a page has no market, so that it is requested again."""
    markets = Fields.of(SITE, decode(answer)).rows("markets")
    return markets is None or not (markets or may_be_empty)


def _id_of(row: Fields) -> str | None:
    name = row.text("id") or row.integer("id")
    return str(name) if name and _ID.fullmatch(str(name)) else None


def _settled_at(row: Fields) -> dt.datetime | None:
    moments = (row.time("closedTime"), row.time("umaEndDate"))
    return max((moment for moment in moments if moment), default=None)


def _is_undecided(row: Fields) -> bool:
    """Return True if a market is open or its vote is not over; no status means no vote."""
    return not row.boolean("closed") or row.text("umaResolutionStatus") not in {"resolved", None}


def _series_of(row: Fields) -> str | None:
    """Return the kind of series that a market is left out for, or None."""
    events = row.rows("events") or []
    tags = row.rows("tags") or []
    slugs = [row.text("slug"), *(tag.text("slug") for tag in tags)]
    series = [*slugs, *(event.text("seriesSlug") for event in events)]
    if _inner(row, "outcomes").texts("list") == ("Up", "Down"):
        return "an up-or-down series"
    if any(_UP_OR_DOWN.search(name) for name in series if name):
        return "an up-or-down series"
    is_game = any(each.values.get(name) for each in (row, *events) for name in _OF_GAMES)
    kinds = {name.lower() for name in (*slugs[1:], row.text("category")) if name}
    return "a game of sport" if is_game or not kinds.isdisjoint(_SPORTS) else None


def _read(row: Fields) -> Question | Drop:
    """Return a market as a question, or why it is left out."""
    name = str(_id_of(row))
    title = row.text("question")
    series = _series_of(row)
    if series:
        return Drop(name, "low_quality", f"{series}, which is left out")
    listed = _inner(row, "outcomes")
    outcomes = listed.texts("list")
    found = _inner(row, "outcomePrices").numbers("list")
    prices = [price for price in found if price is not None]
    counts = {len(outcomes), len(listed.rows("list") or []), len(found), len(prices)}
    if title is None or len(outcomes) < 2 or len(counts) > 1:
        return Drop(name, "parse_error", "expected a question, and as many prices as outcomes")
    opened_at = row.time("startDate") or row.time("createdAt")
    if opened_at is None:
        return Drop(name, "no_date", "neither startDate nor createdAt")
    answer = prices.index(1.0) if sorted(prices)[-2:] == [0.0, 1.0] else None
    is_settled = row.text("umaResolutionStatus") == "resolved" or len(set(prices)) == 1
    if answer is None and (not is_settled or not any(prices)):
        return Drop(name, "unknown_format", f"prices {prices} tell no answer")
    slug = row.text("slug") or ""
    return Question(
        question_id=name,
        source=SITE,
        url=f"https://polymarket.com/market/{slug}" if _SLUG.fullmatch(slug) else None,
        title=title,
        resolution_criteria=row.text("description"),
        options=outcomes,
        answer_index=answer,
        created_at=row.time("createdAt"),
        opened_at=opened_at,
        closed_at=row.time("closedTime"),
        resolved_at=_settled_at(row),
        status="void" if answer is None else "resolved",
        tags=_tags(row),
        licence=INFO.licence,
    )


def _inner(row: Fields, name: str) -> Fields:
    """Return the list in a field, which is JSON within a string, as the field ``list``."""
    try:
        return Fields(row.where, {"list": load_json(row.text(name) or "")})
    except ValueError:
        return Fields(row.where)


def _tags(row: Fields) -> tuple[str, ...]:
    """Return the labels of a market's tags; older markets have a category instead."""
    labels = [*(tag.text("label") for tag in row.rows("tags") or []), row.text("category")]
    return tuple(dict.fromkeys(label for label in labels if label))
