from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from core.month import Month
from simulator.forecasts import NUM_OPEN, NUM_QUESTIONS, VOID, questions
from simulator.server import Web, serve_sites
from simulator.sites import manifold, metaculus, polymarket
from simulator.world import World

JANUARY, MARCH = Month("2024-01"), Month("2024-03")
WORLD = World(5, JANUARY, MARCH)


def test_a_world_asks_the_same_questions_again_and_another_world_others() -> None:
    found = questions(WORLD, "manifold")
    assert found == questions(World(5, JANUARY, MARCH), "manifold")
    assert {q.title for q in found}.isdisjoint(
        q.title for q in questions(World(6, JANUARY, MARCH), "manifold")
    )
    assert [q.title for q in found] != [q.title for q in questions(WORLD, "metaculus")]


def test_every_month_has_the_same_mix() -> None:
    found = questions(WORLD, "manifold")
    assert len({q.id for q in found}) == len(found) == 3 * NUM_QUESTIONS + NUM_OPEN
    mixes = []
    for month in WORLD.months:
        there = [q for q in found if q.resolved and q.resolved in month]
        kinds = Counter((q.is_binary, q.is_void, q.answer_index is None) for q in there)
        mixes.append(
            (kinds, sum(q.opened < month.start - (month.end - month.start) * 24 for q in there))
        )
        assert {month.start} < {q.resolved for q in there}
        assert month.end.timestamp() - 1 in {q.resolved.timestamp() for q in there if q.resolved}
    assert mixes[0] == mixes[1] == mixes[2]
    assert sum(count for (_, is_void, _), count in mixes[0][0].items() if is_void) == len(VOID)


def test_a_question_is_whole() -> None:
    for q in questions(WORLD, "metaculus"):
        assert q.opened < q.closed <= (q.resolved or q.closed)
        assert 2 <= len(q.options) <= 5 and len(set(q.options)) == len(q.options)
        assert sum(q.crowd) == pytest.approx(1) and all(0 < each < 1 for each in q.crowd)
        assert (q.answer_index is None) == (q.is_void or q.resolved is None)
        assert q.tags and q.background and q.criteria


@pytest.fixture
def web() -> Iterator[Web]:
    sites = [module.Site(WORLD) for module in (manifold, polymarket, metaculus)]
    with serve_sites(sites) as running:
        yield running


def ask(web: Web, key: str, path: str, **headers: str) -> tuple[int, Any]:
    answer = requests.get(web.urls[key] + path, headers=headers, timeout=10)
    return answer.status_code, answer.json() if "json" in answer.headers[
        "Content-Type"
    ] else answer.text


def test_manifold_lists_the_newest_first_and_no_more_than_it_says(web: Web) -> None:
    _, rows = ask(web, "manifold", "/v0/markets?limit=1000")
    created = [row["createdTime"] for row in rows]
    assert created == sorted(created, reverse=True)
    _, rest = ask(web, "manifold", f"/v0/markets?limit=5&before={rows[3]['id']}")
    assert [row["id"] for row in rest] == [row["id"] for row in rows[4:9]]
    _, [oldest] = ask(web, "manifold", "/v0/markets?limit=1&order=asc")
    assert oldest == rows[-1]
    assert ask(web, "manifold", "/v0/markets?limit=1001")[0] == 400
    assert ask(web, "manifold", "/v0/market/nobody")[0] == 404
    assert "textDescription" not in rows[0]


def test_polymarket_has_lists_inside_of_texts_and_no_offsets(web: Web) -> None:
    path = "/markets/keyset?closed=true&order=closedTime&ascending=false&limit=7"
    _, first = ask(web, "polymarket", path)
    assert len(first["markets"]) == 7 and "tags" not in first["markets"][0]
    assert isinstance(json.loads(first["markets"][0]["outcomes"]), list)
    _, second = ask(web, "polymarket", f"{path}&after_cursor={first['next_cursor']}")
    assert second["markets"][0]["closedTime"] <= first["markets"][-1]["closedTime"]
    assert ask(web, "polymarket", f"{path}&offset=7")[0] == 422
    assert ask(web, "polymarket", "/markets")[0] == 422
    assert ask(web, "polymarket", f"{path}&after_cursor=x")[0] == 422


def test_metaculus_gives_nothing_without_its_token(web: Web) -> None:
    path = "/api/posts/?statuses=resolved&limit=100&order_by=published_at"
    assert ask(web, "metaculus", path)[0] == 401
    assert ask(web, "metaculus", path, Authorization="Token wrong")[0] == 401
    status, page = ask(web, "metaculus", path, Authorization=f"Token {metaculus.TOKEN}")
    assert status == 200 and page["next"] is None
    assert {post["status"] for post in page["results"]} == {"resolved"}
    assert "description" not in next(p for p in page["results"] if "question" in p)["question"]


@pytest.mark.parametrize("key", ["manifold", "polymarket", "metaculus"])
def test_a_person_can_read_along(web: Web, key: str) -> None:
    status, page = ask(web, key, "/")
    assert status == 200 and page.count("<li>") > 3 * NUM_QUESTIONS - 5
