"""Simulated Polymarket: the market list of the Gamma API, with a cursor for the next page.

Each question of the world is a market, also those on sport. One more market per kind in ODDITIES
must be dropped by crawlers. Every month's first market was closed before the month, and resolved in
the month. Like the real list, this one ignores filters by closing time, and a market without a
start is in no list with ``start_date_max``.
"""

from __future__ import annotations

import base64
import datetime as dt
import functools
import json

from core.json import JsonObject
from simulator.forecasts import SimulatedQuestion, questions
from simulator.server import Request, Response, WorldSite, as_json, as_utc, take_quirk

MAX_LIMIT = 100
ODDITIES: dict[str, JsonObject] = {
    "in dispute": {"umaResolutionStatus": "disputed"},
    "hardly any bets": {"volume": "12.5", "volumeNum": 12.5},
    "old and not settled": {"umaResolutionStatus": None, "outcomePrices": '["0.31", "0.69"]'},
    "no winner": {"umaResolutionStatus": None, "outcomePrices": '["0", "0"]'},
    "no prices": {"outcomePrices": None},
    "up or down": {"outcomes": '["Up", "Down"]', "slug": "btc-updown-5m-1781770200",
                   "tags": [{"id": "102127", "label": "Up or Down", "slug": "up-or-down"}]},
    "a game": {"sportsMarketType": "moneyline", "gameStartTime": "2024-01-01 00:00:00+00"},
}  # fmt: skip


class Site(WorldSite):
    """The list of markets."""

    keys: tuple[str, ...] = ("polymarket",)
    max_limit = MAX_LIMIT

    @functools.cached_property
    def markets(self) -> list[JsonObject]:
        """All markets, sorted by closing time; open markets come last."""
        asked = questions(self.world, "polymarket")
        found = [*map(_market, asked), *_oddities(asked)]
        return sorted(found, key=lambda m: (m["closedTime"] or "9", m["id"]))

    def respond(self, request: Request) -> Response:
        """Respond with the list of markets."""
        if request.path == "/markets/keyset":
            return self._list(request)
        if request.path == "/markets":
            return as_json({"type": "validation error", "error": "use /markets/keyset"}, 422)
        return as_json({"type": "not found error", "error": "not found"}, 404)

    def _list(self, request: Request) -> Response:
        """Answer a list of markets; quirks repeat, empty or change the page."""
        limit = request.arg("limit", "20")
        cursor = request.arg("after_cursor")
        if not limit.isdecimal() or not 0 < int(limit) <= MAX_LIMIT or "offset" in request.query:
            return as_json({"type": "validation error", "error": "limit or offset"}, 422)
        if take_quirk(self, "error_as_200"):
            return as_json({"type": "internal error", "error": "cannot get the information"})
        found = self._find(request)
        start = _place(cursor, found)
        if start is None:
            return as_json({"type": "validation error", "error": "invalid cursor"}, 422)
        end = start + min(int(limit), self.max_limit)
        page = found[start:end]
        response: JsonObject = {"markets": page}
        if end < len(found):
            response["next_cursor"] = _cursor(page[-1])
        if start and take_quirk(self, "moving_items"):
            response["markets"] = [found[start - 1], *page]
        if take_quirk(self, "empty_page"):
            response["markets"] = []
        has_tags = request.arg("include_tag") == "true"
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        rows = [_row(market, has_tags, is_bare, is_odd) for market in response["markets"]]
        return as_json({**response, "markets": rows})

    def _find(self, request: Request) -> list[JsonObject]:
        """Return the markets that match the filters, in the order asked for."""
        is_closed = request.arg("closed", "false") == "true"
        least = float(request.arg("volume_num_min", "0"))
        most = float(request.arg("volume_num_max", "inf"))
        started = request.arg("start_date_max", "999")
        ended = request.arg("end_date_max", "9")
        found = []
        for market in self.markets:
            in_time = (market["startDate"] or "99") <= started and market["endDate"] <= ended
            is_large = least <= market["volumeNum"] <= most
            if market["closed"] == is_closed and is_large and in_time:
                found.append(market)
        if request.arg("order") != "closedTime":
            found.sort(key=lambda market: int(market["id"]))
        return found if request.arg("ascending", "true") == "true" else found[::-1]


def _cursor(market: JsonObject) -> str:
    return base64.urlsafe_b64encode(json.dumps({"id": market["id"]}).encode()).decode()


def _place(cursor: str, found: list[JsonObject]) -> int | None:
    places = {_cursor(market): place for place, market in enumerate(found, start=1)}
    return places.get(cursor) if cursor else 0


def _market(question: SimulatedQuestion) -> JsonObject:
    """Return a market in JSON, with the prices that its state has."""
    count = len(question.options)
    slug = f"market-{question.id}"
    prices = [f"{share:.3f}" for share in question.crowd]
    if question.is_void:
        prices = [f"{1 / count:.4f}"] * count
    elif question.answer_index is not None:
        prices = [str(int(index == question.answer_index)) for index in range(count)]
    closed_at = question.closed if question.id.endswith("000") else question.resolved
    volume = 1000.25 + int(question.id) % 500
    return {
        "id": question.id, "question": question.title, "conditionId": f"0x{question.id}",
        "slug": slug, "resolutionSource": "", "endDate": as_utc(question.closed),
        "startDate": as_utc(question.opened),
        "createdAt": as_utc(question.opened - dt.timedelta(days=1)),
        "description": f"{question.background}\n\n{question.criteria}",
        "outcomes": json.dumps(question.options), "outcomePrices": json.dumps(prices),
        "volume": str(volume), "volumeNum": volume,
        "active": True, "closed": question.resolved is not None, "archived": False,
        "closedTime": f"{closed_at:%Y-%m-%d %H:%M:%S+00}" if closed_at else None,
        "umaEndDate": as_utc(question.resolved) if question.resolved else None,
        "umaResolutionStatus": "resolved" if question.resolved else None,
        "lastTradePrice": 0.999,
        "gameStartTime": as_utc(question.closed) if "Sports" in question.tags else None,
        "tags": [{"id": str(n), "label": tag, "slug": tag.lower().replace(" ", "-")}
                 for n, tag in enumerate(question.tags)],
    }  # fmt: skip


def _oddities(asked: list[SimulatedQuestion]) -> list[JsonObject]:
    """Return copies of the last market, each with a fault."""
    answered = [each for each in asked if each.is_binary and each.answer_index is not None]
    last = max(answered, key=lambda question: (question.resolved, question.id))
    return [
        {**_market(last), "id": f"99{number}", "slug": f"odd-{number}", **fields}
        for number, fields in enumerate(ODDITIES.values())
    ]


def _row(market: JsonObject, has_tags: bool, is_bare: bool, is_odd: bool) -> JsonObject:
    """Return a market, with tags if asked; quirks take or add fields."""
    row = {key: value for key, value in market.items() if has_tags or key != "tags"}
    if is_bare:
        optional = ("description", "slug", "tags", "createdAt", "resolutionSource")
        row = {key: value for key, value in row.items() if key not in optional}
    return row | ({"undocumented": [{"<b>": 1}]} if is_odd else {})
