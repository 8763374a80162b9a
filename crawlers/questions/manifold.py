"""Manifold: questions (markets) that users create, and on which users bet play money.

A market belongs to the month in which its author set the answer (``resolutionTime``). The list of
all markets (https://docs.manifold.markets/api) is newest first, 1,000 per page. A market may have
been open for years, so a crawl reads the whole list. Texts and options are only in the record of
each single market. The crawler keeps yes/no and choose-one markets with at least MIN_BETTORS
bettors. Personal markets and markets about Manifold itself are dropped. Markets cancelled or
resolved to a probability (MKT) are void. Updates that Manifold appends to texts (``Update
2025-03-01 (PST)``) are cut off; other edits cannot be detected. No licence is stated; authors hold
the rights to texts, so texts are for local use only.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Any

from core.corpus.questions import CrowdForecast, Question
from core.errors import ItemFailed, ItemUnavailable, SourceChanged
from core.month import Month
from crawlers.contract import Drop, Failure, missing_item
from crawlers.questions.contract import (
    YES_NO,
    Found,
    Listing,
    QuestionContext,
    QuestionSourceInfo,
    forecasts,
    instant_of_ms,
    know_all_from,
    month_of,
    number,
    text,
    texts,
)
from crawlers.web.fetcher import Fetched, Fetcher, decode

SITE = "manifold"
INFO = QuestionSourceInfo(
    name=SITE,
    title="Manifold: play-money questions",
    licence="LicenseRef-unknown",
    language="en",
    category="forecasting",
    sites={SITE: "https://api.manifold.markets"},
    request_interval_s=0.5,  # 500 requests a minute are allowed per IP address
    first_month=Month("2021-12"),
)
PAGE_SIZE = 1_000  # markets per page, the maximum that the API allows
MIN_BETTORS = 10
# Options added later than this after a market's start may reveal events; such markets are dropped.
MAX_ANSWER_AGE = dt.timedelta(days=1)
# Questions with topics of these prefixes are dropped. So are titles (_PRIVATE_TITLE) in the first
# person, or about Manifold, its money, or the question itself.
_PRIVATE_TOPICS = (
    "manifold", "mana-", "meta-market", "nonpredictive", "personal", "self-resolving",
    "selfresolving", "unranked", "whalebait",
)  # fmt: skip
_PRIVATE_TITLE = re.compile(
    r"\b(?i:will|do|did|am|was|should|can|could|have|had|would|if|that|what|when) I\b"
    r"|\bI(?:'|’)(?:ll|m|ve|d)\b|\b(?:my|me|myself)\b"
    r"|\b[Tt]his (?:market|question|poll)\b|\bManifold\b|\bmana\b"
)
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
_APPENDED = re.compile(r"^\W*Update 20\d\d-\d\d-\d\d\b", re.MULTILINE)

Row = dict[str, Any]


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the questions resolved in the months, newest market first."""
    listing = Listing(context.fetcher, SITE, know_all_from(months))
    for row in _list_markets(listing):
        resolved_at = instant_of_ms(row.get("resolutionTime"))
        if not row.get("isResolved"):
            context.passed_over["open"] += 1
        elif row.get("outcomeType") not in {"BINARY", "MULTIPLE_CHOICE"}:
            context.passed_over["not_a_choice"] += 1
        elif (month := month_of(resolved_at, months, context)) and resolved_at:
            yield month, _read(row, resolved_at, context.fetcher)


def _list_markets(listing: Listing) -> Iterator[Row]:
    oldest = _page({"limit": 1, "order": "asc"}, listing)[0]["id"]
    params: dict[str, str | int] = {"limit": PAGE_SIZE}
    passed: set[str] = set()
    while oldest not in passed:
        page = _page(params, listing)
        yield from page
        ids = {row["id"] for row in page}
        if ids <= passed:
            raise SourceChanged(
                f"{SITE}: the page before {params.get('before')} has no market that was not on a "
                f"former one; expected older ones, down to {oldest}"
            )
        passed |= ids
        params["before"] = page[-1]["id"]


def _page(params: dict[str, str | int], listing: Listing) -> list[Row]:
    answer = listing.page("/v0/markets", params, _is_busy)
    rows = decode(answer)
    if not all(isinstance(row, dict) and _ID.fullmatch(str(row.get("id"))) for row in rows):
        raise SourceChanged(f"{SITE}: {answer.url}: expected markets with an id, got {rows!r:.200}")
    return list(rows)


def _is_busy(answer: Fetched) -> bool:
    """Return True if a page has no market, so that it is requested again."""
    rows = decode(answer)
    return not isinstance(rows, list) or not rows


def _read(row: Row, resolved_at: dt.datetime, fetcher: Fetcher) -> Found:
    """Return the question of a market in the list, or a drop; fetch its record only if needed."""
    name, title = row["id"], text(row.get("question"))
    bettors = number(row.get("uniqueBettorCount"))
    if title is None:
        return Drop(name, "parse_error", f"question is {row.get('question')!r:.50}")
    if _PRIVATE_TITLE.search(title):
        return Drop(name, "low_quality", "personal, or about Manifold itself")
    if bettors is not None and bettors < MIN_BETTORS:
        return Drop(name, "low_quality", f"{bettors:.0f} bet on it, at least {MIN_BETTORS} must")
    record = _fetch_record(name, resolved_at, fetcher)
    if isinstance(record, Drop | Failure):
        return record
    topics = texts(record.get("groupSlugs"))
    if private := [topic for topic in topics if topic.startswith(_PRIVATE_TOPICS)]:
        return Drop(name, "low_quality", f"a topic is {private[0]}")
    if bettors is None and (number(record.get("uniqueBettorCount")) or 0) < MIN_BETTORS:
        return Drop(name, "low_quality", f"fewer than {MIN_BETTORS} bet on it, or nobody knows")
    return _question({**record, **row}, topics, resolved_at)


def _fetch_record(name: str, resolved_at: dt.datetime, fetcher: Fetcher) -> Row | Drop | Failure:
    try:
        path = f"/v0/market/{name}"
        answer = fetcher.get(SITE, path, is_busy=_is_no_record, not_before=resolved_at)
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(name, error)
    record: Row = decode(answer)
    if record.get("id") != name:
        return Drop(name, "parse_error", f"{answer.url} is of {record.get('id')!r:.50}")
    return record


def _is_no_record(answer: Fetched) -> bool:
    record = decode(answer)
    return not isinstance(record, dict) or "id" not in record


def _question(market: Row, topics: tuple[str, ...], resolved_at: dt.datetime) -> Question | Drop:
    opened_at = instant_of_ms(market.get("createdTime"))
    if opened_at is None:
        return Drop(market["id"], "no_date", f"createdTime is {market.get('createdTime')!r:.50}")
    is_binary = market["outcomeType"] == "BINARY"
    choices = _binary(market) if is_binary else _choices(market, opened_at)
    if isinstance(choices, Drop):
        return choices
    options, answer, probabilities = choices
    return Question(
        question_id=market["id"],
        source=SITE,
        url=text(market.get("url")),
        title=market["question"],
        background=_without_updates(text(market.get("textDescription"))),
        options=options,
        answer_index=answer,
        created_at=opened_at,
        opened_at=opened_at,
        closed_at=instant_of_ms(market.get("closeTime")),
        resolved_at=resolved_at,
        status="void" if answer is None else "resolved",
        tags=topics,
        crowd_forecast=_crowd(market, options, probabilities),
        licence=INFO.licence,
    )


Choices = tuple[tuple[str, ...], int | None, list[float | None]]


def _binary(market: Row) -> Choices:
    answer = {"YES": 0, "NO": 1}.get(str(market.get("resolution")))
    yes = number(market.get("probability"))
    return YES_NO, answer, [yes, None if yes is None else 1 - yes]


def _choices(market: Row, opened_at: dt.datetime) -> Choices | Drop:
    name, answers = market["id"], market.get("answers")
    if not isinstance(answers, list) or not all(isinstance(each, dict) for each in answers):
        return Drop(name, "parse_error", "expected a list of answers")
    if market.get("shouldAnswersSumToOne") is False:
        return Drop(name, "unknown_format", "several answers may be right")
    for each in answers:
        added_at = instant_of_ms(each.get("createdTime"))
        if added_at is not None and added_at > opened_at + MAX_ANSWER_AGE:
            return Drop(name, "edited_later", f"an answer was added {added_at}")
    answers = sorted(answers, key=lambda each: number(each.get("index")) or 0)
    ids = [str(each.get("id")) for each in answers]
    resolution = str(market.get("resolution"))
    answer = ids.index(resolution) if resolution in ids else None
    options = tuple(text(each.get("text")) or "" for each in answers)
    return options, answer, [number(each.get("probability")) for each in answers]


def _crowd(
    market: Row, options: tuple[str, ...], probabilities: list[float | None]
) -> tuple[CrowdForecast, ...]:
    """Return the last prices as forecasts; () if one is 0 or 1 (the answer), or set too late."""
    known = [each for each in probabilities if each is not None and 0 < each < 1]
    bet_at, closed_at = (instant_of_ms(market.get(k)) for k in ("lastBetTime", "closeTime"))
    if len(known) < len(options) or (bet_at and closed_at and bet_at > closed_at):
        return ()
    return forecasts(options, known, bet_at)


def _without_updates(description: str | None) -> str | None:
    """Cut off updates that were appended to a description; they may reveal the answer."""
    update = _APPENDED.search(description or "")
    return description[: update.start()] if description and update else description
