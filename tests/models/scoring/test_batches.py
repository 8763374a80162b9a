import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BatchTooLarge, NotMeasurable
from models.scoring.protocols import get_protocol
from models.scoring.scorer import DeviceFull, Losses, Tally, Tokens
from models.scoring.windows import Batches, Job, Window, plan_windows

START = 7


class Sums:
    max_batch_tokens = None

    def __init__(self, room: int = 10**9) -> None:
        self.room = room
        self.passes: list[tuple[int, int]] = []  # rows, width

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        self.passes.append((len(inputs), max(map(len, inputs))))
        if math.prod(self.passes[-1]) > self.room:
            raise DeviceFull("full")
        scale = 1.0 if alphabet is None else 0.5
        return [
            scale * (np.cumsum(read)[len(read) - len(wanted) :] + wanted).astype(np.float64)
            for read, wanted in zip(inputs, targets, strict=True)
        ]


def expected(job: Job) -> list[float]:
    window, text = job.window, job.ids.tolist()
    read = [*job.prefix][: window.num_prefix] + text[window.begin : window.end]
    nats = []
    for token in range(window.first, window.end):
        before = read[: window.num_prefix + token - window.begin]
        nats.append(float(sum(before) + text[token]) if before else math.log(100))
    return nats


def run(batches, jobs, alphabet, tally):
    return [scored.nats for scored in batches.measure(jobs, alphabet, tally)]


documents = st.lists(
    st.lists(st.integers(0, 99), max_size=40).map(lambda ids: np.array(ids, dtype=np.int64)),
    max_size=6,
)
names = st.sampled_from(["default", "sliding-9-3", "uncheatable-9", "lm-eval-9"])


@pytest.mark.long
@given(documents, names, st.booleans(), st.integers(1, 60))
def test_each_window_gets_its_own_losses_whatever_the_batches(texts, name, has_start, budget):
    protocol = get_protocol(name)
    num_prefix = int(protocol.prefix == "start" and (has_start or protocol.layout == "rolling"))
    prefix = (START,) * num_prefix
    jobs = [
        Job(ids, window, prefix)
        for ids in texts
        for window in plan_windows(len(ids), protocol, 9, num_prefix)
    ]
    engine, tally = Sums(), Tally()
    losses = run(Batches("m", engine, 100, budget), jobs, None, tally)
    assert [found.tolist() for found in losses] == [expected(job) for job in jobs]
    assert tally.num_tokens_read == sum(job.window.num_inputs for job in jobs)
    assert all(rows == 1 or rows * width <= budget for rows, width in engine.passes)


def test_a_part_of_a_stream_is_read_from_where_it_begins():
    ids = np.arange(20, dtype=np.int64)
    whole = Job(ids, Window(8, 10, 14, 0), ())
    part = Job(ids[5:], Window(8, 10, 14, 0), (), 5)
    assert part.inputs.tolist() == whole.inputs.tolist() == [8, 9, 10, 11, 12]
    assert part.targets.tolist() == whole.targets.tolist() == [10, 11, 12, 13]


def test_windows_with_nothing_to_read_cost_no_pass():
    ids = np.array([5], dtype=np.int64)
    jobs = [Job(ids, Window(0, 0, 1, 0), ()), Job(ids, Window(0, 1, 1, 0), ())]
    engine, tally = Sums(), Tally()
    charged, empty = run(Batches("m", engine, 100, 10), jobs, None, tally)
    assert (charged.tolist(), empty.tolist()) == ([math.log(100)], [])
    assert (engine.passes, tally.num_tokens_read) == ([], 0)


def test_among_an_alphabet_a_token_with_nothing_before_it_costs_its_logarithm():
    ids = np.array([5, 6], dtype=np.int64)
    [losses] = run(
        Batches("m", Sums(), 100, 10), [Job(ids, Window(0, 0, 2, 0), ())], np.arange(16), Tally()
    )
    assert losses.tolist() == [math.log(16), 0.5 * 11]


def jobs_of(*texts: Sequence[int]) -> list[Job]:
    arrays = [np.array(text, dtype=np.int64) for text in texts]
    return [Job(ids, Window(0, 0, len(ids), 1), (START,)) for ids in arrays]


def test_a_batch_that_was_run_is_not_run_again_until_it_is_forgotten():
    engine, tallies = Sums(), [Tally(), Tally(), Tally()]
    batches = Batches("m", engine, 100, 8)
    jobs = jobs_of([1, 2, 3], [4, 5, 6], [7, 8])
    first = run(batches, jobs, None, tallies[0])
    assert len(engine.passes) == 2
    again = run(batches, jobs, None, tallies[1])
    assert len(engine.passes) == 2
    assert [nats.tolist() for nats in again] == [nats.tolist() for nats in first]
    assert tallies[0].num_tokens_read == tallies[1].num_tokens_read == 8
    assert tallies[0].seconds == tallies[1].seconds > 0
    run(batches, jobs[:2], None, tallies[2])
    assert len(engine.passes) == 2  # the same batch
    run(batches, jobs[:1], None, tallies[2])
    assert len(engine.passes) == 3  # another one
    batches.forget()
    run(batches, jobs, None, tallies[2])
    assert len(engine.passes) == 5


def test_batches_that_differ_in_anything_are_not_taken_for_each_other():
    batches = Batches("m", Sums(), 100, 20)
    ids = np.full(20, START, dtype=np.int64)
    alike = [  # the same tokens in a row, but for where rows end, what is scored, and among what
        ([(0, 10), (0, 8)], None),
        ([(0, 9), (0, 9)], None),
        ([(1, 10), (0, 8)], None),
        ([(0, 9), (0, 9)], ids),
    ]
    for scored, alphabet in alike:
        jobs = [Job(ids, Window(0, first, end, 1), (START,)) for first, end in scored]
        found = run(batches, jobs, alphabet, Tally())
        scale = 1 if alphabet is None else 0.5
        for job, nats in zip(jobs, found, strict=True):
            assert nats.tolist() == [scale * each for each in expected(job)]


def test_another_text_where_one_was_in_memory_is_not_taken_for_it():
    batches = Batches("m", Sums(), 100, 8)
    for first in range(50):
        jobs = jobs_of([first, 2, 3])
        [losses] = run(batches, jobs, None, Tally())
        assert losses.tolist() == expected(jobs[0])
        del jobs


def test_a_full_device_halves_the_budget_until_the_batches_fit():
    engine = Sums(room=13)
    batches = Batches("m", engine, 100, 64)
    jobs = jobs_of(*([number, 2, 3, 4] for number in range(16)))
    budgets = [batches.budget]
    while True:
        try:
            losses = run(batches, jobs, None, Tally())
        except BatchTooLarge as error:
            assert "16 windows of 4 tokens" in str(error) or budgets[1:]
            budgets.append(batches.budget)
            batches.forget()
        else:
            break
    assert budgets == [64, 32, 16, 8]
    assert [nats.tolist() for nats in losses] == [expected(job) for job in jobs]
    assert all(width * rows <= 8 for rows, width in engine.passes[-8:])


def test_the_budget_follows_the_batch_that_did_not_fit_where_that_is_smaller():
    batches = Batches("m", Sums(room=7), 100, 1000)
    with pytest.raises(BatchTooLarge, match="2 windows of 4 tokens .* now have 4 tokens"):
        run(batches, jobs_of([1, 2, 3, 4], [5, 6, 7, 8]), None, Tally())
    assert batches.budget == 4


def test_a_window_that_does_not_fit_by_itself_is_not_measurable():
    batches = Batches("m", Sums(room=7), 100, 1000)
    with pytest.raises(NotMeasurable, match=r"m: a window of 8 tokens does not fit .*--context"):
        run(batches, jobs_of(range(8), [1, 2]), None, Tally())
    assert batches.budget == 1000
