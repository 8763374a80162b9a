from collections import Counter

import pytest

from core.month import Month
from simulator.forecasts import NUM_OPEN, NUM_QUESTIONS, VOID, questions
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
