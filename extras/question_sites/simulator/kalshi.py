"""Simulated Kalshi: the list of markets, with a cursor, records of series, and the archive's begin.

Each yes/no question of the world is an event with one market. Any other question is an event with
a market for each of its options. The series of a market is that of its question's first tag. One
more market per kind in ODDITIES must be dropped or passed over by crawlers. The list leaves out the
second of ``min_settled_ts`` and that of ``max_settled_ts``.
"""

from __future__ import annotations

import base64
import datetime as dt
import functools
from collections.abc import Iterator

from core.json import JsonObject
from simulator.forecasts import SimulatedQuestion, questions
from simulator.server import Request, Response, WorldSite, as_json, as_utc, take_quirk

PATH = "/trade-api/v2"
MAX_LIMIT = 1_000
QUICK = "KXQUICK"
ODDITIES: dict[str, JsonObject] = {
    "in dispute": {"status": "disputed"},
    "a number": {"market_type": "scalar"},
    "hardly any bets": {"volume_fp": "12.50"},
    "an odd result": {"result": "maybe"},
    "no opening": {"open_time": None},
    "of fifteen minutes": {"event_ticker": f"{QUICK}-24MAR310015"},
}
_OPTIONAL = ("rules_secondary", "yes_sub_title", "no_sub_title", "subtitle", "created_time")


class Site(WorldSite):
    """The lists and records of the public part of the API."""

    keys: tuple[str, ...] = ("kalshi",)
    max_limit = MAX_LIMIT

    @functools.cached_property
    def archived_before(self) -> dt.datetime:
        """The moment before which markets are in the archive alone."""
        return self.world.months[0].start

    @functools.cached_property
    def markets(self) -> list[JsonObject]:
        """All markets, in order of their names."""
        asked = questions(self.world, "kalshi")
        found = [market for question in asked for market in market_rows(question)]
        return sorted([*found, *_oddities(asked)], key=lambda market: str(market["ticker"]))

    def respond(self, request: Request) -> Response:
        """Respond with the list, a record of a series, or the begin of the archive."""
        path = request.path.removeprefix(PATH)
        if path == "/markets":
            return self._list(request)
        if path == "/historical/cutoff":
            begin = as_utc(self.archived_before)
            odd = {"undocumented": {"<b>": 1}} if take_quirk(self, "extra_fields") else {}
            return as_json({"market_settled_ts": begin, "trades_created_ts": begin, **odd})
        kind, _, name = path.rpartition("/")
        series = self._series.get(name) if kind == "/series" else None
        if series is None:
            return as_json({"error": {"code": "not_found", "message": "not found"}}, 404)
        bare = take_quirk(self, "missing_fields")
        return as_json({"series": {k: v for k, v in series.items() if not (bare and k == "tags")}})

    @functools.cached_property
    def _series(self) -> dict[str, JsonObject]:
        tags = {each.tags for each in questions(self.world, "kalshi")}
        found = {_series_of(each): _record(_series_of(each), each[0], "custom") for each in tags}
        return {**found, QUICK: _record(QUICK, "Crypto", "fifteen_min")}

    def _list(self, request: Request) -> Response:
        """Answer a list of markets; quirks repeat, empty or change the page."""
        limit = request.arg("limit", "100")
        if not limit.isdecimal() or not 0 < int(limit) <= MAX_LIMIT:
            return as_json({"error": {"code": "bad_request", "message": "invalid limit"}}, 400)
        if take_quirk(self, "error_as_200"):
            return as_json({"error": {"code": "internal", "message": "internal error"}})
        found = list(self._find(request))
        start = _place(request.arg("cursor"), found)
        if start is None:
            return as_json({"error": {"code": "bad_request", "message": "invalid cursor"}}, 400)
        end = start + min(int(limit), self.max_limit)
        page = found[start:end]
        cursor = _cursor(page[-1]) if end < len(found) else ""
        if start and take_quirk(self, "moving_items"):
            page.insert(0, found[start - 1])
        if page and take_quirk(self, "empty_page"):
            page = []
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        rows = [_row(each, is_bare, is_odd) for each in page]
        return as_json({"markets": rows, "cursor": cursor})

    def _find(self, request: Request) -> Iterator[JsonObject]:
        """Yield the markets of the asked status that settled between two times."""
        first = float(request.arg("min_settled_ts", "0"))
        last = float(request.arg("max_settled_ts", "inf"))
        for market in self.markets:
            settled = market["settlement_ts"]
            is_settled = settled is not None
            if is_settled != (request.arg("status", "settled") == "settled"):
                continue
            if settled is None or first < dt.datetime.fromisoformat(settled).timestamp() < last:
                yield market


def market_rows(question: SimulatedQuestion) -> list[JsonObject]:
    """Return the markets of a question: one, or one for each option."""
    event = f"{_series_of(question.tags)}-{question.id}"
    if question.is_binary:
        return [_market(question, event, event, "Yes", question.answer_index == 0)]
    return [
        _market(question, event, f"{event}-O{index}", option, question.answer_index == index)
        for index, option in enumerate(question.options)
    ]


def _market(
    question: SimulatedQuestion, event: str, ticker: str, answer: str, is_right: bool
) -> JsonObject:
    """Return a market of an answer in JSON."""
    result = "yes" if is_right else "no"
    if question.is_void:
        result = "scalar"
    is_over = question.resolved is not None
    return {
        "ticker": ticker, "event_ticker": event, "market_type": "binary",
        "title": question.title, "subtitle": "", "yes_sub_title": answer, "no_sub_title": answer,
        "created_time": as_utc(question.opened - dt.timedelta(days=1)),
        "open_time": as_utc(question.opened), "close_time": as_utc(question.closed),
        "settlement_ts": as_utc(question.resolved) if question.resolved else None,
        "status": "finalized" if is_over else "active", "result": result if is_over else "",
        "rules_primary": f"If {question.criteria} Then the market resolves to Yes.",
        "rules_secondary": question.background,
        "volume_fp": f"{1000 + int(question.id) % 500}.25", "last_price_dollars": "0.9900",
        "can_close_early": True, "settlement_timer_seconds": 300,
    }  # fmt: skip


def _series_of(tags: tuple[str, ...]) -> str:
    return "KX" + "".join(letter for letter in tags[0].upper() if letter.isalpha())


def _record(name: str, category: str, frequency: str) -> JsonObject:
    return {
        "ticker": name, "title": f"About {category}", "category": category,
        "frequency": frequency, "tags": [f"{category} news"], "settlement_sources": [],
    }  # fmt: skip


def _oddities(asked: list[SimulatedQuestion]) -> list[JsonObject]:
    """Return copies of the last market, each with a fault in one field."""
    answered = [
        each
        for each in asked
        if each.is_binary and each.answer_index is not None and "Sports" not in each.tags
    ]
    last = max(answered, key=lambda question: (question.resolved, question.id))
    [market] = market_rows(last)
    return [
        {**market, "ticker": f"{market['ticker']}-ODD{number}", **fields}
        for number, fields in enumerate(ODDITIES.values())
    ]


def _cursor(market: JsonObject) -> str:
    return base64.urlsafe_b64encode(str(market["ticker"]).encode()).decode()


def _place(cursor: str, found: list[JsonObject]) -> int | None:
    places = {_cursor(market): place for place, market in enumerate(found, start=1)}
    return places.get(cursor) if cursor else 0


def _row(market: JsonObject, is_bare: bool, is_odd: bool) -> JsonObject:
    row = {key: value for key, value in market.items() if not (is_bare and key in _OPTIONAL)}
    return row | ({"undocumented": [{"<b>": 1}]} if is_odd else {})
