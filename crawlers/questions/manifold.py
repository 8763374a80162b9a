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

from core.corpus.questions import CrowdForecast, Question
from core.errors import ItemFailed, ItemUnavailable, SourceChanged
from core.month import Month
from crawlers.apis.fields import Fields
from crawlers.contract import Drop, Failure, missing_item
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
_MS = 1000  # per second, in the API's times


def fetch_questions(
    months: Sequence[Month], context: QuestionContext
) -> Iterator[tuple[Month, Found]]:
    """Yield the questions resolved in the months, newest market first."""
    listing = Listing(context.fetcher, SITE, know_all_from(months))
    for row in _list_markets(listing):
        resolved_at = row.epoch("resolutionTime", _MS)
        if not row.boolean("isResolved"):
            context.passed_over["open"] += 1
        elif row.text("outcomeType") not in {"BINARY", "MULTIPLE_CHOICE"}:
            context.passed_over["not_a_choice"] += 1
        else:
            month = month_of(resolved_at, months, context)
            if month and resolved_at:
                yield month, _read(row, resolved_at, context.fetcher)


def _list_markets(listing: Listing) -> Iterator[Fields]:
    """Yield all markets, newest first; raise SourceChanged if the pages repeat."""
    oldest = _id_of(_page({"limit": 1, "order": "asc"}, listing)[0])
    params: dict[str, str | int] = {"limit": PAGE_SIZE}
    known_ids: set[str] = set()
    while oldest not in known_ids:
        page = _page(params, listing)
        yield from page
        ids = {_id_of(row) for row in page}
        if ids <= known_ids:
            raise SourceChanged(
                f"{SITE}: the page before {params.get('before')} has no market that was not on a "
                f"former one; expected older ones, down to {oldest}"
            )
        known_ids |= ids
        params["before"] = _id_of(page[-1])


def _page(params: dict[str, str | int], listing: Listing) -> list[Fields]:
    answer = listing.page("/v0/markets", params, _is_busy)
    return Fields.list_of(f"{SITE}: {answer.url}", decode(answer)) or []


def _is_busy(answer: Fetched) -> bool:
    """Return True if a page has no market, so that it is requested again."""
    return not Fields.list_of(SITE, decode(answer))


def _id_of(market: Fields) -> str:
    name = market.text("id")
    return market.need("id", name if name and _ID.fullmatch(name) else None, "an id")


def _read(row: Fields, resolved_at: dt.datetime, fetcher: Fetcher) -> Found:
    """Return the question of a market in the list, or a drop; fetch its record only if needed."""
    name = _id_of(row)
    title = row.text("question")
    bettors = row.number("uniqueBettorCount")
    if title is None:
        return Drop(name, "parse_error", "no text in question")
    if _PRIVATE_TITLE.search(title):
        return Drop(name, "low_quality", "personal, or about Manifold itself")
    if bettors is not None and bettors < MIN_BETTORS:
        return Drop(name, "low_quality", f"{bettors:.0f} bet on it, at least {MIN_BETTORS} must")
    record = _fetch_record(name, resolved_at, fetcher)
    if isinstance(record, Drop | Failure):
        return record
    topics = record.texts("groupSlugs")
    private = [topic for topic in topics if topic.startswith(_PRIVATE_TOPICS)]
    if private:
        return Drop(name, "low_quality", f"a topic is {private[0]}")
    if bettors is None and (record.number("uniqueBettorCount") or 0) < MIN_BETTORS:
        return Drop(name, "low_quality", f"fewer than {MIN_BETTORS} bet on it, or nobody knows")
    market = Fields(row.where, {**record.values, **row.values})
    return _question(name, title, market, topics, resolved_at)


def _fetch_record(name: str, resolved_at: dt.datetime, fetcher: Fetcher) -> Fields | Drop | Failure:
    """Return the full record of a market, or the drop or failure if there is none."""
    try:
        path = f"/v0/market/{name}"
        answer = fetcher.get(SITE, path, is_busy=_is_no_record, not_before=resolved_at)
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(name, error)
    record = Fields.of(f"{SITE}: {name}", decode(answer))
    if record.text("id") != name:
        return Drop(name, "parse_error", f"{answer.url} is of {record.text('id')!r:.50}")
    return record


def _is_no_record(answer: Fetched) -> bool:
    return Fields.of(SITE, decode(answer)).text("id") is None


def _question(
    name: str, title: str, market: Fields, topics: tuple[str, ...], resolved_at: dt.datetime
) -> Question | Drop:
    """Convert a market to a question, or to a drop if a required field is missing."""
    opened_at = market.epoch("createdTime", _MS)
    if opened_at is None:
        return Drop(name, "no_date", "createdTime is no time")
    if market.text("resolution") is None:
        return Drop(name, "parse_error", "resolved, but no text in resolution")
    is_binary = market.text("outcomeType") == "BINARY"
    choices = _binary(market) if is_binary else _choices(name, market, opened_at)
    if isinstance(choices, Drop):
        return choices
    options, answer, probabilities = choices
    return Question(
        question_id=name,
        source=SITE,
        url=market.text("url"),
        title=title,
        background=_without_updates(market.text("textDescription")),
        options=options,
        answer_index=answer,
        created_at=opened_at,
        opened_at=opened_at,
        closed_at=market.epoch("closeTime", _MS),
        resolved_at=resolved_at,
        status="void" if answer is None else "resolved",
        tags=topics,
        crowd_forecast=_crowd(market, options, probabilities),
        licence=INFO.licence,
    )


# Options, index of the right one (None: void), and the crowd's probability of each.
Choices = tuple[tuple[str, ...], int | None, list[float | None]]


def _binary(market: Fields) -> Choices:
    answer = {"YES": 0, "NO": 1}.get(market.text("resolution") or "")
    yes = market.number("probability")
    return YES_NO, answer, [yes, None if yes is None else 1 - yes]


def _choices(name: str, market: Fields, opened_at: dt.datetime) -> Choices | Drop:
    """Return options, answer and probabilities; a drop if several answers may be right."""
    answers = market.rows("answers")
    if answers is None:
        return Drop(name, "parse_error", "expected a list of answers")
    if market.boolean("shouldAnswersSumToOne") is False:
        return Drop(name, "unknown_format", "several answers may be right")
    for each in answers:
        added_at = each.epoch("createdTime", _MS)
        if added_at is not None and added_at > opened_at + MAX_ANSWER_AGE:
            return Drop(name, "edited_later", f"an answer was added {added_at}")
    answers = sorted(answers, key=lambda each: each.number("index") or 0)
    ids = [each.text("id") for each in answers]
    resolution = market.text("resolution")
    answer = ids.index(resolution) if resolution and resolution in ids else None
    options = tuple(each.text("text") or "" for each in answers)
    return options, answer, [each.number("probability") for each in answers]


def _crowd(
    market: Fields, options: tuple[str, ...], probabilities: list[float | None]
) -> tuple[CrowdForecast, ...]:
    """Return the last prices as forecasts; none if a price is 0 or 1 (the answer), or too late."""
    known = [each for each in probabilities if each is not None and 0 < each < 1]
    bet_at, closed_at = (market.epoch(name, _MS) for name in ("lastBetTime", "closeTime"))
    if len(known) < len(options) or (bet_at and closed_at and bet_at > closed_at):
        return ()
    return forecasts(options, known, bet_at)


def _without_updates(description: str | None) -> str | None:
    """Cut off updates that were appended to a description; they may reveal the answer."""
    update = _APPENDED.search(description or "")
    return description[: update.start()] if description and update else description
