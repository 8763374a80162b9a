import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from core.errors import MalformedInput
from extras.scylla.puzzle import Instance, Puzzle, Rows, list_puzzles, load_puzzle
from extras.scylla.puzzles.extremes import FindMinimum
from extras.scylla.sampling import PuzzleData, Sampling, sample_items
from extras.scylla.texts import Written, extract_examples
from tests.forks import ROOT, run_process

FEW = Sampling(num_items=12)


def texts_of(puzzle: Puzzle, count: int = 60, seed: int = 0) -> list[str]:
    rng = random.Random(f"{puzzle.name} {seed}")

    def numbers() -> list[int]:
        return [rng.randint(0, 60) for _ in range(rng.randint(5, 9))]

    def one() -> object:
        if puzzle.input_shape == "pair":
            return [numbers(), numbers()]
        if puzzle.input_shape == "list":
            return numbers()
        half = {(i, j): rng.randint(1, 60) for i in range(6) for j in range(i)}
        cities = range(rng.randint(4, 6))
        return [[half.get((max(i, j), min(i, j)), 0) for j in cities] for i in cities]

    texts = [f"{index}. {one()}" for index in range(count)]
    return [*texts, *texts[:7], "[", "[-1, 2]", "[[5, 6]", "nothing"]


def sampled(name: str, sampling: Sampling = FEW, model: str = "m", seed: int = 0) -> PuzzleData:
    puzzle = load_puzzle(name)
    return sample_items(
        model, puzzle, extract_examples(texts_of(puzzle, seed=seed), puzzle.input_shape), sampling
    )


def numbers_of(puzzle: Puzzle, instance: Instance) -> set[int]:
    """Return the numbers of an input, without the zeros on a matrix's diagonal."""
    return {
        number
        for place, row in enumerate(instance.rows)
        for column, number in enumerate(row)
        if puzzle.input_shape != "matrix" or place != column
    }


@pytest.mark.parametrize("name", list_puzzles())
def test_splits_are_alike_but_for_their_numbers(name: str) -> None:
    puzzle = load_puzzle(name)
    written = extract_examples(texts_of(puzzle), puzzle.input_shape)
    data = sample_items("m", puzzle, written, FEW)
    assert data.status == "complete" and data.reason is None
    assert {"id", "ood"} <= data.items.keys()
    assert all(len(items) == len(set(items)) == 12 for items in data.items.values())
    for split in data.items.keys() - {"id"}:
        universe = puzzle.universe if split == "ood" else range(len(written.elements) * 2 + 2)
        for known, other in zip(data.items["id"], data.items[split], strict=True):
            assert list(map(len, known.rows)) == list(map(len, other.rows))
            assert len(known.parameters) == len(other.parameters)
            assert not numbers_of(puzzle, other) & written.elements.keys()
            assert numbers_of(puzzle, other) <= set(universe)
    for items in data.items.values():
        assert all(puzzle.accepts(item, puzzle.solve(item)) for item in items)


@pytest.mark.parametrize("name", ["find_minimum", "sort_numbers", "two_sum", "find_mode", "tsp"])
def test_equal_numbers_stay_equal(name: str) -> None:
    data = sampled(name)
    for split in ("ood", "ood_near"):
        for known, other in zip(data.items["id"], data.items[split], strict=True):
            pairs = set()
            for before, after in zip(known.rows, other.rows, strict=True):
                pairs |= set(zip(before, after, strict=True))
            assert len(pairs) == len(dict(pairs)) == len({after for _, after in pairs})


def test_items_in_distribution_are_what_the_model_wrote() -> None:
    puzzle = load_puzzle("sort_numbers")
    written = extract_examples(texts_of(puzzle), "list")
    data = sample_items("m", puzzle, written, FEW)
    assert {item.rows for item in data.items["id"]} <= written.examples.keys()
    assert (data.num_id_examples, data.num_repaired) == (len(written.examples), 0)
    assert data.num_id_elements == written.elements.total()
    assert data.num_distinct_elements == len(written.elements)


def test_repairs_are_counted_and_use_what_the_model_wrote() -> None:
    puzzle = load_puzzle("find_mode")
    written = Written(
        Counter({1: 3, 2: 2, 3: 1, 4: 1}),
        Counter({((first, second),): 1 for first in range(1, 5) for second in range(1, 5)}),
    )
    data = sample_items("m", puzzle, written, Sampling(num_items=0))
    # Pairs of different numbers have no mode; each is mended to one of the four that have.
    assert (data.num_id_examples, data.num_repaired) == (4, 0)
    broken = Written(written.elements, Counter({((1, 2),): 1, ((3, 4),): 5}))
    data = sample_items("m", puzzle, broken, Sampling(num_items=0))
    assert data.num_repaired == data.num_id_examples > 0


@pytest.mark.parametrize(
    ("sampling", "count", "needed"),
    [(FEW, 0, 20), (FEW, 19, 20), (FEW, 20, 20), (Sampling(), 263, 264), (Sampling(), 264, 264)],
)
def test_too_few_examples_are_insufficient(sampling: Sampling, count: int, needed: int) -> None:
    data = sample_items("m", load_puzzle("find_minimum"), _pairs(count), sampling)
    assert data.num_id_examples == count
    if count == needed:
        assert data.status == "complete"
    else:
        assert (data.status, dict(data.items)) == ("insufficient_id_data", {})
        says = f"wrote {count} different inputs; {needed} are needed"
        assert data.reason and says in data.reason


def test_a_model_that_wrote_the_whole_universe_has_nothing_out_of_distribution() -> None:
    puzzle = load_puzzle("find_minimum")
    written = _pairs(40)
    written.elements.update(puzzle.universe)
    data = sample_items("m", puzzle, written, FEW)
    assert data.status == "insufficient_id_data" and "too many of the numbers" in str(data.reason)


class Minimum(FindMinimum):
    def __init__(self, changed: Callable[[Rows, Sequence[int], Rows | None], Rows | None]) -> None:
        self.changed = changed

    def transfer(self, rows: Rows, universe: Sequence[int], rng: random.Random) -> Rows | None:
        return self.changed(rows, universe, super().transfer(rows, universe, rng))


def test_an_example_without_counterpart_gives_way_to_another() -> None:
    puzzle = Minimum(lambda rows, _, made: None if rows[0][0] % 2 else made)
    data = sample_items("m", puzzle, _pairs(40), FEW)
    assert all(len(items) == 12 for items in data.items.values())
    assert all(item.rows[0][0] % 2 == 0 for item in data.items["id"])


def test_a_split_that_cannot_be_made_is_left_out() -> None:
    puzzle = Minimum(lambda _, universe, made: None if max(universe) < 1000 else made)
    data = sample_items("m", puzzle, _pairs(40), FEW)
    assert data.status == "complete" and data.items.keys() == {"id", "ood"}


def test_a_number_that_the_model_wrote_is_refused_in_a_counterpart() -> None:
    puzzle = Minimum(lambda rows, _, made: ((0, *(made or rows)[0][1:]),))
    with pytest.raises(MalformedInput, match="none of the numbers"):
        sample_items("m", puzzle, _pairs(40), FEW)


def test_frequent_examples_are_drawn_more_often_where_that_is_asked() -> None:
    puzzle = load_puzzle("find_minimum")
    written = _pairs(40)
    frequent = {rows for rows in list(written.examples)[:10]}
    for rows in frequent:
        written.examples[rows] = 200

    def drawn(method: str) -> int:
        total = 0
        for seed in range(30):
            sampling = Sampling(num_items=10, method=method, seed=seed)  # type: ignore[arg-type]
            items = sample_items("m", puzzle, written, sampling).items["id"]
            total += sum(item.rows in frequent for item in items)
        return total

    # Of 300 items: nearly all by frequency; a quarter, 75 with a deviation of 7, otherwise.
    assert drawn("frequency") > 250
    assert 45 < drawn("unique") < 105


def test_what_is_drawn_depends_on_model_puzzle_and_seed_alone() -> None:
    puzzle = load_puzzle("find_minimum")
    texts = texts_of(puzzle)
    data = sample_items("m", puzzle, extract_examples(texts, "list"), FEW)
    again = sample_items("m", puzzle, extract_examples(reversed(texts), "list"), FEW)
    assert repr(data) == repr(again)
    assert data != sampled("find_minimum", model="n")
    assert data != sampled("find_minimum", Sampling(num_items=12, seed=1))
    assert data.items["id"] != sampled("find_maximum").items["id"]


def test_one_worker_and_four_draw_the_same_bytes() -> None:
    names = ["find_mode", "two_sum", "longest_common_subarray", "tsp", "three_sum_multiple_ten"]
    alone = [text_of_sample(name) for name in names]
    done = run_process(sys.executable, "-c", _DRAWS, *reversed(names), cwd=ROOT, check=True)
    assert done.stdout.split("\0") == [*alone[::-1], "\n"]


# Four forks of a process without threads: a fork loses them, and keeps the locks that they hold.
_DRAWS = """
import sys
from concurrent.futures import ProcessPoolExecutor
from extras.scylla.tests.test_sampling import text_of_sample
with ProcessPoolExecutor(4) as pool:
    print(*pool.map(text_of_sample, sys.argv[1:]), "\\n", sep="\\0", end="")
"""


def text_of_sample(name: str) -> str:
    return repr(sampled(name))


def _pairs(count: int) -> Written:
    examples: Counter[Rows] = Counter({((first, first + 1),): 1 for first in range(count)})
    return Written(Counter(range(count + 1)), examples)
