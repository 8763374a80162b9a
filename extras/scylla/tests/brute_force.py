"""Brute-force answers and validity of every puzzle, without its code; new ones go into ORACLES."""

import calendar
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from extras.scylla.puzzle import Answer, Instance

Answers = set[Answer]
Choice = tuple[int, ...]


@dataclass(frozen=True)
class Oracle:
    answers: Callable[[Instance], Answers]
    is_valid: Callable[[Instance], bool]


def _longest(answers: Iterable[Answer]) -> Answers:
    found = set(answers)
    most = max(map(len, found))
    return {answer for answer in found if len(answer) == most}


def _choices(instance: Instance, sizes: Iterable[int]) -> list[Choice]:
    numbers = instance.rows[0]
    return [choice for size in sizes for choice in itertools.combinations(numbers, size)]


def _in_any_order(choices: Iterable[Choice]) -> Answers:
    return {order for choice in set(choices) for order in itertools.permutations(choice)}


def minima(instance: Instance) -> Answers:
    numbers = instance.rows[0]
    return {(n,) for n in numbers if all(n <= other for other in numbers)}


def maxima(instance: Instance) -> Answers:
    numbers = instance.rows[0]
    return {(n,) for n in numbers if all(n >= other for other in numbers)}


def modes(instance: Instance) -> Answers:
    numbers = instance.rows[0]
    return {
        (n,) for n in numbers if all(numbers.count(n) >= numbers.count(other) for other in numbers)
    }


def of_rank(instance: Instance) -> Answers:
    numbers = instance.rows[0]
    (k,) = instance.parameters
    return {
        (n,)
        for n in numbers
        if sum(other > n for other in numbers) < k <= sum(other >= n for other in numbers)
    }


def ascending_orders(instance: Instance) -> Answers:
    def extend(taken: Answer, rest: tuple[int, ...]) -> Iterable[Answer]:
        if not rest:
            yield taken
        for place, n in enumerate(rest):
            if all(n <= other for other in rest):
                yield from extend((*taken, n), rest[:place] + rest[place + 1 :])

    return set(extend((), instance.rows[0]))


def without_duplicates(instance: Instance) -> Answers:
    numbers = instance.rows[0]
    places = range(len(numbers))
    firsts = {numbers.index(n) for n in numbers}
    return {
        tuple(numbers[place] for place in kept)
        for size in range(len(numbers) + 1)
        for kept in itertools.combinations(places, size)
        if set(kept) == firsts
    }


def summing(sizes: Iterable[int], is_wanted: Callable[[int, tuple[int, ...]], bool]) -> Oracle:
    """Return an oracle; an input is valid if exactly one choice of places has a wanted sum."""
    sizes = list(sizes)

    def wanted(instance: Instance) -> list[Choice]:
        return [c for c in _choices(instance, sizes) if is_wanted(sum(c), instance.parameters)]

    return Oracle(lambda i: _in_any_order(wanted(i)), lambda i: len(wanted(i)) == 1)


def is_k(total: int, parameters: tuple[int, ...]) -> bool:
    return total == parameters[0]


def is_inside(total: int, parameters: tuple[int, ...]) -> bool:
    return total > parameters[0] and total < parameters[1]


def ends_in_nought(total: int, parameters: tuple[int, ...]) -> bool:
    return not parameters and str(total).endswith("0")


def in_range(sizes: Iterable[int], is_unique: bool) -> Oracle:
    """Return an oracle for sums between two ends, themselves sums; one choice, or one sum, fits."""
    sizes = list(sizes)
    plain = summing(sizes, is_inside)

    def is_valid(instance: Instance) -> bool:
        sums = [sum(choice) for choice in _choices(instance, sizes)]
        inside = [total for total in sums if is_inside(total, instance.parameters)]
        one = len(inside) == 1 if is_unique else len(set(inside)) == 1
        return one and set(instance.parameters) <= set(sums)

    return Oracle(plain.answers, is_valid)


def is_subset_sum(instance: Instance) -> bool:
    hits = [c for c in _choices(instance, range(1, 17)) if is_k(sum(c), instance.parameters)]
    return len(hits) == 1 and len(hits[0]) in (4, 5, 6)


def tours(instance: Instance) -> Answers:
    distances = instance.rows
    cost = {}
    for middle in itertools.permutations(range(1, len(distances))):
        tour = (0, *middle, 0)
        cost[tour] = sum(distances[tour[i]][tour[i + 1]] for i in range(len(distances)))
    shortest = min(cost.values())
    return {tour for tour in cost if cost[tour] == shortest}


def are_distances(instance: Instance) -> bool:
    distances = instance.rows
    columns = tuple(zip(*distances, strict=True))
    noughts = [(i, j) for i, row in enumerate(distances) for j, n in enumerate(row) if n == 0]
    return (
        columns == distances
        and noughts == [(i, i) for i in range(len(distances))]
        and len(tours(instance)) <= 2
    )


def increasing(instance: Instance) -> Answers:
    numbers = instance.rows[0]
    return _longest(
        choice
        for choice in _choices(instance, range(1, len(numbers) + 1))
        if list(choice) == sorted(set(choice))
    )


def runs(instance: Instance) -> Answers:
    distinct = sorted(set(instance.rows[0]))
    return _longest(
        choice
        for size in range(1, len(distinct) + 1)
        for choice in itertools.combinations(distinct, size)
        if all(high - low == 1 for low, high in itertools.pairwise(choice))
    )


def common_blocks(instance: Instance) -> Answers:
    def blocks(numbers: tuple[int, ...]) -> set[Answer]:
        ends = range(len(numbers) + 1)
        return {numbers[i:j] for i in ends for j in ends if i < j}

    common = blocks(instance.rows[0]) & blocks(instance.rows[1])
    return _longest(common) if common else set()


def always(instance: Instance) -> bool:
    return len(instance.rows[0]) >= 2 and not instance.parameters


def walked_dates(instance: Instance) -> Answers:
    left = sum(
        number
        for place, number in enumerate(instance.rows[0], 1)
        if place <= instance.parameters[0]
    )
    year = 2000
    month = 1
    while left >= (length := calendar.monthrange(year, month)[1]):
        left -= length
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return {(year, month, left + 1)}


def ends_of_walks(instance: Instance, longest: int | None = None) -> Answers:
    """The ends of every walk of at most k links, one walk at a time."""
    links = list(zip(*instance.rows, strict=False))
    walks = [[instance.rows[0][0]]]
    ends = {instance.rows[0][0]}
    while walks:
        walk = walks.pop()
        if len(walk) <= (instance.parameters[0] if longest is None else longest):
            further = {end for start, end in links if start == walk[-1]} - set(walk)
            walks += [[*walk, end] for end in further]
            ends |= further
    return {tuple(sorted(ends))}


def is_step(instance: Instance) -> bool:
    return instance.parameters[0] in (1, 2, 4, 8)[: min(map(len, instance.rows)).bit_length()]


ORACLES = {
    "find_minimum": Oracle(minima, always),
    "find_maximum": Oracle(maxima, always),
    "find_mode": Oracle(modes, lambda i: len(modes(i)) == 1),
    "find_topk": Oracle(of_rank, lambda i: 2 <= i.parameters[0] <= len(i.rows[0]) / 2),
    "sort_numbers": Oracle(ascending_orders, always),
    "remove_duplicate_numbers": Oracle(without_duplicates, always),
    "two_sum": summing([2], is_k),
    "three_sum": summing([3], is_k),
    "three_sum_in_range": in_range([3], is_unique=True),
    "three_sum_multiple_ten": summing([3], ends_in_nought),
    "four_sum": summing([4], is_k),
    "four_sum_in_range": in_range([4], is_unique=False),
    "four_sum_multiple_ten": summing([4], ends_in_nought),
    "subset_sum": Oracle(summing(range(1, 9), is_k).answers, is_subset_sum),
    "subset_sum_in_range": in_range([4, 5, 6], is_unique=True),
    "subset_sum_multiple_ten": summing([4, 5, 6], ends_in_nought),
    "tsp": Oracle(tours, are_distances),
    "longest_increasing_subsequence": Oracle(
        increasing, lambda i: all(len(answer) > 1 for answer in increasing(i))
    ),
    "longest_consecutive_elements": Oracle(
        runs, lambda i: all(len(answer) > 1 for answer in runs(i))
    ),
    "add_days": Oracle(walked_dates, is_step),
    "reachable_numbers": Oracle(
        ends_of_walks, lambda i: is_step(i) and all(len(a) > 2 for a in ends_of_walks(i, 99))
    ),
    "longest_common_subarray": Oracle(common_blocks, lambda i: len(common_blocks(i)) == 1),
}


def shape_of(rows: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    order = list(dict.fromkeys(n for row in rows for n in row))
    return [[order.index(n) for n in row] for row in rows]


def lengths_of_runs(numbers: Iterable[int]) -> Counter[int]:
    distinct = set(numbers)
    lengths: Counter[int] = Counter()
    for n in distinct:
        if n - 1 not in distinct:
            lengths[next(step for step in itertools.count() if n + step not in distinct)] += 1
    return lengths
