"""Simulated Manifold: the list of markets, newest first, and a record per market.

Each question of the world is a market. In the world's last month, one more market is resolved for
each kind in ODDITIES (markets that crawlers must drop).
"""

from __future__ import annotations

import datetime as dt
import functools

from core.json import JsonObject
from simulator.forecasts import SimulatedQuestion, questions
from simulator.server import Request, Response, WorldSite, as_json, take_quirk

MAX_LIMIT = 1_000
UPDATE = "Update 2024-05-05 (PST): the author says that it has happened."
ODDITIES: dict[str, JsonObject] = {
    "personal": {"question": "Will I run a marathon this year?"},
    "meta": {"question": "Will Manifold have more users?"},
    "private topic": {"groupSlugs": ["personal-goals"]},
    "few bettors": {"uniqueBettorCount": 3},
    "numeric": {"outcomeType": "PSEUDO_NUMERIC", "resolution": "MKT"},
    "late answer": {},
    "independent answers": {"shouldAnswersSumToOne": False},
}
_DETAILS = ("answers", "shouldAnswersSumToOne", "addAnswersMode", "description",
            "textDescription", "groupSlugs")  # fmt: skip


class Site(WorldSite):
    """The list and the records of markets."""

    keys: tuple[str, ...] = ("manifold",)
    max_limit = MAX_LIMIT

    @functools.cached_property
    def markets(self) -> dict[str, JsonObject]:
        """All markets with all fields, by id, oldest first."""
        asked = questions(self.world, "manifold")
        found = [*map(_market, asked), *_oddities(asked)]
        return {
            market["id"]: market
            for market in sorted(found, key=lambda m: (m["createdTime"], m["id"]))
        }

    def respond(self, request: Request) -> Response:
        """Respond with the list or with the record of a market."""
        if request.path == "/v0/markets":
            return self._list(request)
        kind, _, name = request.path.removeprefix("/").rpartition("/")
        market = self.markets.get(name) if kind == "v0/market" else None
        if market:
            return self._record(market)
        return as_json({"message": "Contract not found"}, 404)

    def _list(self, request: Request) -> Response:
        """Answer a list of markets; quirks repeat, empty or change the page."""
        limit = request.arg("limit", "500")
        before = request.arg("before")
        if not limit.isdecimal() or not 0 < int(limit) <= MAX_LIMIT:
            return as_json({"message": "Error validating request."}, 400)
        names = list(self.markets)
        if request.arg("order", "desc") == "desc":
            names.reverse()
        if before and before not in names:
            return as_json({"message": "before: no such market"}, 400)
        if take_quirk(self, "error_as_200"):
            return as_json({"message": "Internal server error"})
        start = names.index(before) + 1 if before else 0
        found = names[start : start + min(int(limit), self.max_limit)]
        if before and take_quirk(self, "moving_items"):
            found.insert(0, before)
        if found and take_quirk(self, "empty_page"):
            found = []
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        rows = [_row(self.markets[name], is_bare, is_odd) for name in found]
        return as_json(rows)

    def _record(self, market: JsonObject) -> Response:
        if take_quirk(self, "missing_fields"):
            return as_json({key: market[key] for key in market if key != "textDescription"})
        odd = {"undocumented": {"<b>": None}} if take_quirk(self, "extra_fields") else {}
        return as_json({**market, **odd})


def _market(question: SimulatedQuestion) -> JsonObject:
    """Return a market in JSON."""
    name = f"mf{question.id}AbC"
    market: JsonObject = {
        "id": name, "creatorId": "u1", "creatorUsername": "asker", "creatorName": "Asker",
        "createdTime": _ms(question.opened), "closeTime": _ms(question.closed),
        "question": question.title, "slug": f"will-{name.lower()}",
        "url": f"https://manifold.markets/asker/will-{name.lower()}",
        "volume": 1234.5, "volume24Hours": 0, "uniqueBettorCount": 10 + int(question.id) % 50,
        "isResolved": question.resolved is not None,
        "lastBetTime": _ms(question.closed) - 60_000, "lastUpdatedTime": _ms(question.closed),
        "token": "MANA", "groupSlugs": [tag.lower().replace(" ", "-") for tag in question.tags],
        "description": {"type": "doc", "content": []},
        "textDescription": f"{question.background}\n\n{question.criteria}\n\n{UPDATE}",
    }  # fmt: skip
    if question.resolved is not None:
        market["resolutionTime"] = _ms(question.resolved)
    return market | (_binary(question) if question.is_binary else _choices(question))


def _binary(question: SimulatedQuestion) -> JsonObject:
    """Return the fields of a market with two answers."""
    fields: JsonObject = {
        "outcomeType": "BINARY", "mechanism": "cpmm-1", "probability": question.crowd[0], "p": 0.5,
        "pool": {"YES": 100.0, "NO": 50.0},
    }  # fmt: skip
    if question.resolved is not None:
        fields["resolution"] = "CANCEL" if question.is_void else ("YES", "NO")[_right(question)]
    return fields


def _choices(question: SimulatedQuestion) -> JsonObject:
    """Return the fields of a market with several answers."""
    answers = [
        {"id": f"a{index}", "index": index, "text": option, "createdTime": _ms(question.opened),
         "probability": question.crowd[index]}
        for index, option in enumerate(question.options)
    ]  # fmt: skip
    fields: JsonObject = {
        "outcomeType": "MULTIPLE_CHOICE", "mechanism": "cpmm-multi-1", "addAnswersMode": "DISABLED",
        "shouldAnswersSumToOne": True, "answers": answers[::-1],
    }  # fmt: skip
    if question.is_void:
        fields |= {"resolution": "MKT", "resolutions": {"a0": 50, "a1": 50}}
    elif question.resolved is not None:
        fields["resolution"] = f"a{_right(question)}"
        for index, answer in enumerate(answers):
            answer["probability"] = float(index == _right(question))
    return fields


def _right(question: SimulatedQuestion) -> int:
    return -1 if question.answer_index is None else question.answer_index


def _oddities(asked: list[SimulatedQuestion]) -> list[JsonObject]:
    """Return copies of the last market, each with a fault."""
    answered = [question for question in asked if question.answer_index is not None]
    last = max(answered, key=lambda question: (question.resolved, question.id))
    found = []
    for number, (kind, fields) in enumerate(ODDITIES.items()):
        market = {**_market(last), "id": f"odd{number}", **fields}
        if kind == "late answer":
            late = _ms(last.opened + dt.timedelta(days=3))
            answers = [{**answer, "createdTime": late} for answer in market.get("answers", [])]
            market["answers"] = answers
        found.append(market)
    return found


def _row(market: JsonObject, is_bare: bool, is_odd: bool) -> JsonObject:
    row = {key: value for key, value in market.items() if key not in _DETAILS}
    if is_bare:
        optional = ("creatorName", "lastBetTime", "closeTime", "uniqueBettorCount", "slug", "token")
        row = {key: value for key, value in row.items() if key not in optional}
    return row | ({"undocumented": [{"<b>": 1}]} if is_odd else {})


def _ms(moment: dt.datetime) -> int:
    return int(moment.timestamp() * 1000)
