"""Kalshi: questions (markets) of a regulated exchange, on which people bet money (read only).

A market is a yes/no question. It belongs to the month in which it was settled (``settlement_ts``).
The list of markets (https://docs.kalshi.com, ``GET /markets``) needs no account. It can be filtered
by the time of settlement, has 1,000 markets a page, and a cursor for the next page. Markets that
were settled before a moment that ``GET /historical/cutoff`` tells are only in an archive, which
cannot be filtered by time; their months are refused. The category and the rhythm of a market are in
the record of its series, whose name is the first part of the event's.

Several markets of an event are one question with several answers. Each of them is kept as a yes/no
question of its own, and its answer is put before the title: a title may name other answers, too.
Combinations of markets are not requested. Markets with fewer than MIN_VOLUME contracts are left
out, so are sport and series of an hour or less. A market that pays a share (``scalar``) is void. No
crowd forecast is kept, because the list has only final prices. No licence is stated, so texts are
for local use only. Nobody has read the terms for this project yet, so the source is crawled with a
recorded permission only.

In 2026, tens of thousands of markets are settled on a day, most of them of sport and prices. So
a month is sampled by time: it is divided into NUM_DRAWN equal parts, and one window of WINDOW is
drawn from each.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Iterator, Sequence

from core.corpus.questions import Question
from core.errors import ItemFailed, ItemUnavailable, SourceChanged, UsageError
from core.month import Month
from crawlers.apis.fields import Fields, show
from crawlers.contract import Drop, missing_item
from crawlers.questions.contract import (
    YES_NO,
    Found,
    Listing,
    QuestionContext,
    QuestionSourceInfo,
    know_all_from,
    month_of,
)
from crawlers.web.fetcher import Fetched, Fetcher, decode

SITE = "kalshi"
PATH = "/trade-api/v2"
PAGE_SIZE = 1_000  # markets per page, the maximum that the API allows
MIN_VOLUME = 1_000  # contracts; one pays a dollar if it is right
SAMPLED_FROM = Month("2025-01")
WINDOW = dt.timedelta(minutes=10)
NUM_DRAWN = 144  # the windows of a day: a month of D days has D windows in each of its parts
MAX_PAGES = 40  # maximum per window
INFO = QuestionSourceInfo(
    name=SITE,
    title="Kalshi: questions with money on them, of a regulated exchange",
    licence="LicenseRef-unknown",
    language="en",
    category="forecasting",
    sites={SITE: "https://external-api.kalshi.com"},
    request_interval_s=0.5,  # 20 requests a second are allowed with an account
    first_month=Month("2021-07"),
    permission=(
        "its terms were not read when the crawler was written; read the terms of use of its site "
        "and of its API (https://kalshi.com, https://docs.kalshi.com), and record what they allow"
    ),
    sample=(
        f"months from {SAMPLED_FROM}: the markets settled in {NUM_DRAWN} windows of 10 minutes, "
        f"one drawn by the seed from each {NUM_DRAWN}th of the month; earlier months: all; "
        f"markets of at least {MIN_VOLUME} contracts, without sport and series of an hour or less"
    ),
)
_TICKER = re.compile(r"[A-Z0-9][\w.-]{0,99}", re.ASCII)
_QUICK = {"fifteen_min", "hourly"}  # rhythms of series
_SPORT = "sports"
_VOID = {"scalar", "void", ""}

Window = tuple[dt.datetime, dt.datetime]  # first moment of settlement, and the moment after it


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the questions settled in the months, last month first, window by window.

    Raises:
        UsageError: a month is in the archive; nothing was yielded.
    """
    _refuse_archive(Listing(context.fetcher, SITE, know_all_from(months)), months)
    series = _Series(context.fetcher)
    for month in sorted(months, reverse=True):
        listing = Listing(context.fetcher, SITE, know_all_from([month]))
        for window in _windows(month, context):
            for row in _list_markets(listing, window, is_whole=month < SAMPLED_FROM):
                if isinstance(row, Drop):
                    yield month, row
                elif row.text("status") != "finalized":
                    context.passed_over["open"] += 1
                elif row.text("market_type") == "scalar":
                    context.passed_over["not_a_choice"] += 1
                elif _is_of(row, month, window, context):
                    yield month, _read(row, series)
        if month >= SAMPLED_FROM:
            detail = f"{NUM_DRAWN} windows of {WINDOW} were drawn"
            yield month, Drop(f"{month}: other times", "sample_cap", detail)


def _refuse_archive(listing: Listing, months: Sequence[Month]) -> None:
    """Raise an error if a month is in the archive, which cannot be searched by time."""
    answer = listing.page(f"{PATH}/historical/cutoff", {}, _is_no_cutoff)
    fields = Fields.of(f"{SITE}: {answer.url}", decode(answer))
    name = "market_settled_ts"
    begin = fields.need(name, fields.time(name), "a time")
    archived = [str(month) for month in sorted(months) if month.start < begin]
    if archived:
        raise UsageError(
            f"{SITE}: markets settled before {begin:%Y-%m-%d} are in an archive that cannot be "
            f"searched by time; leave out {', '.join(archived)}"
        )


def _is_no_cutoff(answer: Fetched) -> bool:
    return Fields.of(SITE, decode(answer)).time("market_settled_ts") is None


def _windows(month: Month, context: QuestionContext) -> list[Window]:
    """Return the times of which a month's markets are read: one window of each of its parts."""
    if month < SAMPLED_FROM:
        return [(month.start, month.end)]
    count = round((month.end - month.start) / WINDOW)
    size = count // NUM_DRAWN
    drawn = [
        min(range(first, first + size), key=lambda window: context.rank(f"{month}, {window}"))
        for first in range(0, count, size)
    ]
    starts = [month.start + window * WINDOW for window in drawn]
    return [(start, start + WINDOW) for start in starts]


def _list_markets(listing: Listing, window: Window, is_whole: bool) -> Iterator[Fields | Drop]:
    """Yield the rows of a window's pages; ``is_whole`` months cannot be without a market."""
    start, end = window
    params: dict[str, str | int] = {
        "limit": PAGE_SIZE,
        "status": "settled",
        "mve_filter": "exclude",
        # The site takes "after" for its first moment, and may leave out the moment itself.
        "min_settled_ts": int(start.timestamp()) - 1,
        "max_settled_ts": int(end.timestamp()),
    }
    name = f"settled from {start:%Y-%m-%d %H:%M}"
    for _ in range(MAX_PAGES):
        may_be_empty = not is_whole and "cursor" not in params
        answer = listing.page(
            f"{PATH}/markets", params, functools.partial(_is_busy, may_be_empty=may_be_empty)
        )
        page = Fields.of(f"{SITE}: {answer.url}", decode(answer))
        rows = page.rows("markets") or []
        if not rows:
            yield Drop(name, "sample_cap", "no market was settled in this window")
        for row in rows:
            if _ticker_of(row) is None:
                raise SourceChanged(
                    f"{SITE}: {answer.url}: expected a market, not {show(row.values)}"
                )
            yield row
        cursor = page.values.get("cursor")
        if not cursor:
            return
        if not isinstance(cursor, str) or cursor == params.get("cursor"):
            raise SourceChanged(f"{SITE}: expected another cursor as the next, got {show(cursor)}")
        params["cursor"] = cursor
    yield Drop(name, "sample_cap", f"more than {MAX_PAGES} pages")


def _is_busy(answer: Fetched, may_be_empty: bool) -> bool:
    """Return True if a page lacks markets, so that it is requested again."""
    page = Fields.of(SITE, decode(answer))
    rows = page.rows("markets")
    return rows is None or not (rows or (may_be_empty and not page.text("cursor")))


def _ticker_of(row: Fields) -> str | None:
    name = row.text("ticker")
    return name if name and _TICKER.fullmatch(name) else None


def _is_of(row: Fields, month: Month, window: Window, context: QuestionContext) -> bool:
    """Return True if a market was settled in the window; else count the reason."""
    settled_at = row.time("settlement_ts")
    if month_of(settled_at, [month], context) is None or settled_at is None:
        return False
    start, end = window
    if not start <= settled_at < end:
        context.passed_over["other_month"] += 1
        return False
    return True


class _Series:
    """The records of series, each requested once; the error if there is none."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._found: dict[str, Fields | ItemUnavailable | ItemFailed] = {}

    def get(self, name: str) -> Fields | ItemUnavailable | ItemFailed:
        if name not in self._found:
            self._found[name] = self._fetch(name)
        return self._found[name]

    def _fetch(self, name: str) -> Fields | ItemUnavailable | ItemFailed:
        """Return the facts of a series, or the error that there are none."""
        try:
            answer = self._fetcher.get(SITE, f"{PATH}/series/{name}", is_busy=_is_no_series)
        except (ItemUnavailable, ItemFailed) as error:
            return error
        return Fields.of(f"{SITE}: {name}", decode(answer)).inner("series")


def _is_no_series(answer: Fetched) -> bool:
    return Fields.of(SITE, decode(answer)).inner("series").text("ticker") is None


def _read(row: Fields, all_series: _Series) -> Found:
    """Return the question of a settled market, or why there is none."""
    name = str(_ticker_of(row))
    title = row.text("title")
    volume = row.number("volume_fp")
    if volume is None:
        volume = row.number("volume")
    series_name = (row.text("event_ticker") or "").partition("-")[0]
    side = row.values.get("yes_sub_title")
    if title is None or not isinstance(side, str) or not _TICKER.fullmatch(series_name):
        return Drop(name, "parse_error", "no title, no name of the answer, or none of the event")
    if volume is None or volume < MIN_VOLUME:
        return Drop(name, "low_quality", f"{volume} contracts; at least {MIN_VOLUME} are needed")
    series = all_series.get(series_name)
    if not isinstance(series, Fields):
        return missing_item(name, series)
    if series.text("ticker") != series_name:
        return Drop(name, "parse_error", f"{series.where} is of {series.text('ticker')!r:.50}")
    category = series.text("category") or ""
    if category.lower() == _SPORT:
        return Drop(name, "low_quality", "sport, which is left out")
    if series.text("frequency") in _QUICK:
        return Drop(name, "low_quality", "a series of an hour or less, which is left out")
    return _question(name, _full_title(title, side), row, series)


def _full_title(title: str, side: str) -> str:
    """Return a title that names the market's answer, ``side``: one of several of an event.

    Titles of weather have words in bold type, as ``**high temp**``.
    """
    title = title.replace("**", "")
    is_told = not side.strip() or side.lower() in ("yes", title.lower())
    return title if is_told else f"{side}: {title}"


def _question(name: str, title: str, row: Fields, series: Fields) -> Question | Drop:
    """Return a market as a question, or why it is left out."""
    opened_at = row.time("open_time")
    if opened_at is None:
        return Drop(name, "no_date", "open_time is no time")
    result = row.values.get("result")
    answer = {"yes": 0, "no": 1}.get(result) if isinstance(result, str) else None
    is_void = isinstance(result, str) and result in _VOID
    if answer is None and not is_void:
        return Drop(name, "parse_error", f"result is {show(result)}")
    rules = [row.text(each) for each in ("rules_primary", "rules_secondary")]
    tags = [series.text("category"), *series.texts("tags")]
    return Question(
        question_id=name,
        source=SITE,
        url=f"https://kalshi.com/markets/{str(series.text('ticker')).lower()}",
        title=title,
        resolution_criteria="\n\n".join(each for each in rules if each) or None,
        options=YES_NO,
        answer_index=answer,
        created_at=row.time("created_time"),
        opened_at=opened_at,
        closed_at=row.time("close_time"),
        resolved_at=row.time("settlement_ts"),
        status="void" if answer is None else "resolved",
        tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
        licence=INFO.licence,
    )
