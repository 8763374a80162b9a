import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extras.scylla.puzzle import Answer, Instance, list_puzzles, load_puzzle
from extras.scylla.tests.brute_force import ORACLES
from extras.scylla.tests.inputs import instances


def mutations(answer: Answer) -> set[Answer]:
    changed: set[Answer] = {(), (*answer, answer[-1]), (*answer, 0), answer + answer, answer[::-1]}
    for place, number in enumerate(answer):
        before = answer[:place]
        after = answer[place + 1 :]
        changed.add(before + after)
        changed.add((*after, number, *before))
        changed |= {
            (*before, other, *after)
            for other in (number + 1, number - 1, -number, number + 10, 0, *answer)
        }
    return changed


@pytest.mark.parametrize("name", list_puzzles())
@settings(max_examples=15)
@given(data=st.data())
def test_right_answers_are_those_of_brute_force(name: str, data: st.DataObject) -> None:
    puzzle = load_puzzle(name)
    instance = data.draw(instances(puzzle))
    assert ORACLES[name].is_valid(instance)
    right = ORACLES[name].answers(instance)
    assert puzzle.solve(instance) in right
    refused = [answer for answer in right if not puzzle.accepts(instance, answer)]
    assert refused == []
    some = sorted(right)[:20]
    for answer in {changed for each in some for changed in mutations(each)}:
        assert puzzle.accepts(instance, answer) == (answer in right), answer


# Inputs of which several answers are right: one of them, the others, and what is nearly right.
SEVERAL: list[tuple[str, Instance, list[Answer], list[Answer]]] = [
    ("longest_increasing_subsequence", Instance(((5, 1, 6, 2),)), [(5, 6), (1, 6), (1, 2)],
     [(2, 6), (5, 5), (1,), (1, 2, 6), (6, 2)]),
    ("longest_consecutive_elements", Instance(((9, 4, 1, 5, 8, 2, 9),)), [(8, 9), (4, 5), (1, 2)],
     [(9, 8), (2, 1), (9, 9), (5, 6), (1,), (8, 9, 9)]),
    ("four_sum_in_range", Instance(((1, 2, 3, 4, 5, 6, 30),), (13, 15)),
     [(1, 2, 5, 6), (1, 3, 4, 6), (6, 4, 3, 1), (2, 3, 4, 5)],
     [(1, 2, 4, 6), (1, 2, 3, 8), (2, 2, 5, 5), (3, 5, 6), (1, 3, 4, 6, 0)]),
    ("subset_sum_multiple_ten", Instance(((1, 2, 3, 4, 5, 6, 7),)),
     [(1, 2, 3, 4), (4, 3, 2, 1), (1, 2, 4, 6, 7)],
     [(3, 7), (4, 6), (1, 2, 7), (1, 2, 3, 5), (1, 1, 2, 6), (-1, 1, 4, 6)]),
    ("tsp", Instance(((0, 1, 9, 2), (1, 0, 3, 9), (9, 3, 0, 4), (2, 9, 4, 0))),
     [(0, 1, 2, 3, 0), (0, 3, 2, 1, 0)],
     [(0, 2, 1, 3, 0), (1, 2, 3, 0, 1), (0, 1, 2, 3), (1, 2, 3), (0, 1, 1, 3, 0), (0, 0)]),
    ("find_topk", Instance(((9, 9, 7, 5),), (2,)), [(9,)],
     [(7,), (9, 9), (5,), ()]),
    ("add_days", Instance(((31, 29, 366),), (2,)), [(2000, 3, 1)],
     [(2000, 2, 29), (2001, 3, 2), (3, 1), (1, 3, 2000)]),
    ("add_days", Instance(((36_524, 1),), (1,)), [(2099, 12, 31)], [(2100, 1, 1)]),
    ("add_days", Instance(((36_584, 1),), (2,)), [(2100, 3, 2)], [(2100, 3, 1), (2100, 2, 30)]),
    ("reachable_numbers", Instance(((1, 2, 3, 9), (2, 3, 1, 4, 8)), (1,)), [(1, 2)],
     [(2,), (2, 1), (1, 2, 3), (1, 1, 2)]),
    ("reachable_numbers", Instance(((1, 2, 3, 9), (2, 3, 1, 4, 8)), (4,)), [(1, 2, 3)],
     [(1, 2, 3, 4), (1, 2), (3, 2, 1)]),
    ("two_sum", Instance(((5, 5, 3),), (10,)), [(5, 5)],
     [(5, 3), (5, 5, 0), (10,), (3, 7)]),
    ("two_sum", Instance(((5, 4, 3),), (9,)), [(5, 4), (4, 5)],
     [(3, 6), (9, 0), (10, -1)]),
    ("subset_sum", Instance(((1, 2, 4, 8, 16, 32),), (15,)), [(1, 2, 4, 8), (8, 1, 4, 2)],
     [(15,), (8, 4, 3), (16, -1), (1, 2, 4, 8, 0), (1, 1, 1, 4, 8)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "instance", "right", "wrong"), SEVERAL)
def test_every_right_answer_is_accepted(
    name: str, instance: Instance, right: list[Answer], wrong: list[Answer]
) -> None:
    puzzle = load_puzzle(name)
    assert [answer for answer in right if not puzzle.accepts(instance, answer)] == []
    assert [answer for answer in wrong if puzzle.accepts(instance, answer)] == []
