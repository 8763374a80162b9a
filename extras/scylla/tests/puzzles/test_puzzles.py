import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import UnknownName
from extras.scylla import puzzles
from extras.scylla.puzzle import Instance, Puzzle, Rows, find_puzzles, list_puzzles, load_puzzle
from extras.scylla.sampling import generator_of
from extras.scylla.tests.brute_force import ORACLES, lengths_of_runs, shape_of
from extras.scylla.tests.inputs import draw_rows, instances, pose_with_repair

every_puzzle = pytest.mark.parametrize("name", list_puzzles())
PARAMETERS = ("k", "a", "b")


def flat(rows: Rows) -> list[int]:
    return [number for row in rows for number in row]


def longest_of(puzzle: Puzzle) -> int:
    return min(16, puzzle.max_length or 16)


def posed(puzzle: Puzzle, rng: random.Random) -> Instance:
    rows = draw_rows(puzzle, rng, 60, longest_of(puzzle))
    instance = pose_with_repair(puzzle, rows, range(60), rng)
    assert instance is not None
    return instance


def test_there_are_seventeen_anchors_and_five_probes() -> None:
    puzzles = [load_puzzle(name) for name in list_puzzles()]
    levels = Counter(puzzle.level for puzzle in puzzles)
    assert levels == {1: 3, 2: 4, 3: 3, 4: 3, 5: 4, None: 5}
    probes = {puzzle.name for puzzle in puzzles if puzzle.level is None}
    assert {name for name in probes if not name.startswith("longest_")} == {
        "add_days", "reachable_numbers"
    }  # fmt: skip
    assert len({puzzle.title for puzzle in puzzles}) == 22
    assert [puzzle.name for puzzle in puzzles] == list(list_puzzles())
    with pytest.raises(UnknownName, match="five_sum"):
        load_puzzle("five_sum")


ONE_MORE = '''
"""Count numbers."""

from extras.scylla.list_puzzle import ListPuzzle


class CountNumbers(ListPuzzle):
    """How many there are."""

    title = "Count Numbers"
    statement = "You are given a list of numbers. How many are there?"
    answer_rule = "Write the answer as a single number."
    level = 1
    complexity = "O(N)"
    answer_shape = "number"

    def solve(self, instance):
        return (len(instance.rows[0]),)


PUZZLE = CountNumbers()
'''


def test_one_more_file_is_one_more_puzzle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list_puzzles()
    (tmp_path / "count_numbers.py").write_text(ONE_MORE, encoding="utf-8")
    monkeypatch.setattr(puzzles, "__path__", [*puzzles.__path__, str(tmp_path)])
    find_puzzles.cache_clear()
    try:
        assert list_puzzles() == tuple(sorted([*before, "count_numbers"]))
        puzzle = load_puzzle("count_numbers")
    finally:
        find_puzzles.cache_clear()
        sys.modules.pop("extras.scylla.puzzles.count_numbers", None)
        vars(puzzles).pop("count_numbers", None)
    assert puzzle.name == "count_numbers"
    rng = random.Random(1)
    instance = puzzle.pose(((4, 7, 7),), rng)
    assert instance is not None
    assert puzzle.parse(puzzle.render(instance)) == instance
    assert puzzle.accepts(instance, (3,))
    transferred = puzzle.transfer(instance.rows, puzzle.universe, rng)
    assert transferred is not None
    assert shape_of(transferred) == [[0, 1, 1]]


@every_puzzle
def test_a_puzzle_says_what_it_asks(name: str) -> None:
    puzzle = load_puzzle(name)
    instance = posed(puzzle, random.Random(name))
    named = [letter for letter in PARAMETERS if f"${letter}$" in puzzle.statement]
    assert len(named) == len(instance.parameters)
    assert [f"${letter}$ = " in puzzle.render(instance) for letter in named] == [True] * len(named)
    wanted = "single number" if puzzle.answer_shape == "number" else "list"
    assert wanted in puzzle.answer_rule
    assert puzzle.answer_shape == "list" or len(puzzle.solve(instance)) == 1
    assert puzzle.complexity.startswith("O(")
    assert ("to" in puzzle.complexity) == (puzzle.level is None)


@every_puzzle
def test_other_shapes_pose_nothing(name: str) -> None:
    puzzle = load_puzzle(name)
    rng = random.Random(name)
    rows = posed(puzzle, rng).rows
    negative = ((-rows[0][-1] - 1, *rows[0][1:]), *rows[1:])
    short = rows[0][: puzzle.min_length - 1]
    too_short = (short, *rows[1:])
    long = tuple(range(1 if puzzle.max_length is None else puzzle.max_length + 1))
    shapes: list[Rows] = [(), ((),), rows[:1] * 3, negative, too_short, (long,), (long, long)]
    assert [puzzle.pose(shape, rng) for shape in shapes] == [None] * len(shapes)
    assert not any(map(puzzle.fits, shapes))


@every_puzzle
def test_the_same_seed_makes_the_same(name: str) -> None:
    def make() -> list[object]:
        puzzle = load_puzzle(name)
        made: list[object] = []
        for index in range(8):
            rng = generator_of("model", name, "id", index)
            rows = draw_rows(puzzle, rng, 60, longest_of(puzzle))
            made.append(puzzle.repair(rows, range(60), rng))
            instance = pose_with_repair(puzzle, rows, range(60), rng)
            made.append(instance)
            made.append(instance and puzzle.transfer(instance.rows, puzzle.universe, rng))
        return made

    first = make()
    assert make() == first
    assert len(set(first)) > 8


@every_puzzle
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), highest=st.sampled_from([3, 12, 100, 9999]))
def test_a_repair_takes_elements_alone_and_keeps_shape(name: str, seed: int, highest: int) -> None:
    puzzle = load_puzzle(name)
    rng = random.Random(seed)
    rows = draw_rows(puzzle, rng, highest, longest_of(puzzle))
    elements = sorted(rng.randint(0, highest) for _ in range(20))
    repaired = puzzle.repair(rows, elements, rng)
    assert list(map(len, repaired)) == list(map(len, rows))
    free = {0} if puzzle.input_shape == "matrix" else set()  # the diagonal
    assert set(flat(repaired)) <= set(flat(rows)) | set(elements) | free
    if puzzle.input_shape != "matrix":
        changed = [
            (old, new) for old, new in zip(flat(rows), flat(repaired), strict=True) if old != new
        ]
        assert len(changed) <= 1


# Of so many lists of chance numbers up to 99, and of lengths up to the number, so many are valid
# after 50 repairs at most. Long lists hardly ever have one sum alone that ten divides.
@pytest.mark.parametrize(
    ("name", "longest", "least"),
    [(name, 10, 60) for name in list_puzzles() if "multiple_ten" not in name]
    + [(name, 8, 50) for name in list_puzzles() if "multiple_ten" in name],
)
def test_repairs_lead_to_valid_inputs(name: str, longest: int, least: int) -> None:
    puzzle = load_puzzle(name)
    rng = random.Random(name)
    elements = sorted(rng.randint(0, 99) for _ in range(500))
    posed = [
        pose_with_repair(puzzle, draw_rows(puzzle, rng, 99, longest), elements, rng)
        for _ in range(60)
    ]
    assert sum(instance is not None for instance in posed) >= least


def test_a_planted_mode_leaves_the_length() -> None:
    puzzle = load_puzzle("find_mode")
    rng = random.Random(1)
    for length in range(2, 17):
        rows = (tuple(range(length)),)
        repaired = puzzle.repair(rows, range(length), rng)
        assert len(repaired[0]) == length
        assert puzzle.pose(repaired, rng) is not None


AT_ONCE = {  # what is transferred is an instance without another draw
    "find_mode", "longest_common_subarray", "longest_consecutive_elements",
    "longest_increasing_subsequence",
}  # fmt: skip


@every_puzzle
@settings(max_examples=12)
@given(data=st.data(), is_near=st.booleans())
def test_transferred_rows_are_alike(name: str, data: st.DataObject, is_near: bool) -> None:
    puzzle = load_puzzle(name)
    instance = data.draw(instances(puzzle, longest=8 if "multiple_ten" in name else 12))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    universe = [n for n in range(400) if n % 7 != 3] if is_near else list(puzzle.universe)
    transferred = puzzle.transfer(instance.rows, universe, rng)
    if is_near and transferred is None:
        assert name == "longest_consecutive_elements"  # runs of seven have no room
        return
    assert transferred is not None
    assert set(flat(transferred)) <= {*universe, *([0] if puzzle.input_shape == "matrix" else [])}
    assert shape_of(transferred) == shape_of(instance.rows)
    if "multiple_ten" in name:
        assert [n % 10 for n in transferred[0]] == [n % 10 for n in instance.rows[0]]
        instance = puzzle.pose(transferred, rng) or instance
        assert instance.rows == transferred and ORACLES[name].is_valid(instance)
    if name in AT_ONCE:
        assert puzzle.pose(transferred, rng) is not None


@settings(max_examples=50)
@given(data=st.data())
def test_transfer_keeps_runs(data: st.DataObject) -> None:
    puzzle = load_puzzle("longest_consecutive_elements")
    instance = data.draw(instances(puzzle, longest=14))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    # Of little room, so that runs come near each other.
    transferred = puzzle.transfer(instance.rows, range(1000, 1040), rng)
    assert transferred is not None
    assert lengths_of_runs(transferred[0]) == lengths_of_runs(instance.rows[0])


@every_puzzle
def test_a_universe_too_small_gives_nothing(name: str) -> None:
    puzzle = load_puzzle(name)
    rng = random.Random(name)
    instance = None
    while instance is None or len(set(flat(instance.rows)) - {0}) < 2:
        rows = draw_rows(puzzle, rng, 60, 8)
        instance = pose_with_repair(puzzle, rows, range(60), rng)
    assert puzzle.transfer(instance.rows, [5000], rng) is None
    assert puzzle.transfer(instance.rows, [], rng) is None


def test_runs_fit_exactly_where_there_is_room() -> None:
    puzzle = load_puzzle("longest_consecutive_elements")
    rows = ((1, 2, 3, 7),)
    room = [100, 101, 102, 104]
    for seed in range(10):
        assert puzzle.transfer(rows, room, random.Random(seed)) == ((100, 101, 102, 104),)
    assert puzzle.transfer(rows, [100, 101, 102, 103], random.Random(0)) is None


@every_puzzle
def test_numbers_beyond_64_bits_are_numbers(name: str) -> None:
    puzzle = load_puzzle(name)
    rng = random.Random(name)
    huge = 10**30
    while True:
        shift = {0: huge if "consecutive" in name else 0}  # zeros stay on diagonals
        rows = draw_rows(puzzle, rng, 60, 8)
        rows = tuple(tuple(n + shift.get(n, huge) for n in row) for row in rows)
        elements = range(huge, huge + 60)
        instance = pose_with_repair(puzzle, rows, elements, rng)
        if instance is not None:
            break
    assert puzzle.accepts(instance, puzzle.solve(instance))
    assert ORACLES[name].is_valid(instance)


ASKING = [name for name in list_puzzles() if "$k$" in load_puzzle(name).statement]
RANGING = [name for name in list_puzzles() if "$a$" in load_puzzle(name).statement]


@pytest.mark.parametrize("name", ASKING + RANGING)
def test_whatever_may_be_asked_is_drawn(name: str) -> None:
    puzzle = load_puzzle(name)
    rows: Rows = ((3, 5, 9, 14, 14, 31),)
    if puzzle.input_shape == "pair":
        rows = (*rows, (5, 9, 14, 3, 31, 7))
    numbers = range(sum(rows[0]) + 1)
    questions: list[tuple[int, ...]] = [(k,) for k in numbers]
    if name in RANGING:
        questions = [(a, b) for a in numbers for b in numbers if a < b]
    valid = {q for q in questions if ORACLES[name].is_valid(Instance(rows, q))}
    posed = {puzzle.pose(rows, random.Random(seed)) for seed in range(400)}
    assert {instance.parameters for instance in posed if instance} == valid
    assert len(valid) > 1


DISTANCES = ((0, 1, 9, 2), (1, 0, 3, 9), (9, 3, 0, 4), (2, 9, 4, 0))


@pytest.mark.parametrize(("row", "column", "number"), [(0, 1, 2), (3, 2, 40), (2, 2, 1), (0, 0, 7)])
def test_no_tour_where_a_distance_depends_on_direction(row: int, column: int, number: int) -> None:
    puzzle = load_puzzle("tsp")
    rng = random.Random(0)
    assert puzzle.pose(DISTANCES, rng) is not None
    changed = [list(line) for line in DISTANCES]
    changed[row][column] = number
    rows = tuple(map(tuple, changed))
    assert puzzle.pose(rows, rng) is None
    assert puzzle.pose(puzzle.repair(rows, range(1, 50), rng), rng) is not None


def test_no_tour_where_cities_coincide() -> None:
    puzzle = load_puzzle("tsp")
    rows = ((0, 0, 9, 2), (0, 0, 3, 9), (9, 3, 0, 4), (2, 9, 4, 0))
    rng = random.Random(0)
    assert puzzle.pose(rows, rng) is None
    repaired = puzzle.repair(rows, range(50), rng)
    assert all((n == 0) == (i == j) for i, row in enumerate(repaired) for j, n in enumerate(row))
