from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models.protocols import get_protocol
from models.windows import Window, plan_batches, plan_windows

lengths = st.integers(0, 400)
contexts = st.integers(2, 60)


def scored(windows: list[Window]) -> list[int]:
    return [token for window in windows for token in range(window.first, window.end)]


@given(lengths, contexts, st.booleans())
def test_disjoint_windows_score_every_token_once_within_their_context(n, context, has_start):
    windows = plan_windows(n, get_protocol("default", context), context, has_start)
    assert scored(windows) == list(range(n))
    for window in windows:
        assert window.begin == window.first
        assert window.has_start == has_start
        assert has_start + window.end - window.begin <= context
        assert window.is_charged == (not has_start)
    assert all(has_start + w.end - w.begin == context for w in windows[:-1])


@given(lengths, st.integers(2, 60), st.data(), st.booleans())
def test_sliding_windows_score_every_token_once_with_enough_context(n, context, data, has_start):
    stride = data.draw(st.integers(1, context - 1))
    protocol = get_protocol("sliding", context, stride)
    windows = plan_windows(n, protocol, context, has_start)
    assert scored(windows) == list(range(n))
    for window in windows[1:]:
        assert window.end - window.begin == context  # full, back into the text
        assert window.first - window.begin >= context - stride
        assert window.num_scored <= stride
    assert [window.has_start for window in windows] == [
        has_start and i == 0 for i in range(len(windows))
    ]
    assert sum(window.is_charged for window in windows) == (n > 0 and not has_start)


@given(lengths, contexts)
def test_rolling_windows_score_every_token_once_and_the_last_is_filled_up(n, context):
    windows = plan_windows(n, get_protocol("lm-eval", context), context, has_start=True)
    assert scored(windows) == list(range(n))
    for window in windows[1:]:
        assert window.num_inputs == context
        assert window.first - window.begin >= 1
    assert not any(window.is_charged for window in windows)


@given(lengths, contexts, st.booleans())
def test_uncheatable_chunks_leave_their_first_token_out(n, context, has_start):
    windows = plan_windows(n, get_protocol("uncheatable", context), context, has_start)
    assert scored(windows) == [token for token in range(n) if token % context]
    assert [window.end for window in windows] == [*range(context, n, context), *([n] if n else [])]
    assert not any(window.is_charged or window.has_start for window in windows)


@given(lengths, contexts, st.sampled_from(["default", "sliding", "uncheatable", "lm-eval"]))
def test_ends_grow_up_to_the_last_token(n, context, name):
    windows = plan_windows(n, get_protocol(name, context), context, has_start=True)
    ends = [window.end for window in windows]
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == n


def test_windows_written_out():
    assert plan_windows(5, get_protocol("default", 3), 3, has_start=True) == [
        Window(0, 0, 2, True),
        Window(2, 2, 4, True),
        Window(4, 4, 5, True),
    ]
    assert plan_windows(9, get_protocol("sliding", 4, 2), 4, has_start=True) == [
        Window(0, 0, 3, True),
        Window(1, 3, 5, False),
        Window(3, 5, 7, False),
        Window(5, 7, 9, False),
    ]
    assert plan_windows(8, get_protocol("lm-eval", 3), 3, has_start=True) == [
        Window(0, 0, 3, True),
        Window(2, 3, 6, False),
        Window(4, 6, 8, False),
    ]
    assert Window(4, 4, 5, True).num_inputs == 1  # the start token alone
    assert Window(4, 4, 5, False).num_inputs == 0  # charged, nothing to read
    assert Window(4, 5, 5, False).num_inputs == 0  # nothing scored


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_batches_hold_each_row_once_within_the_budget(rows, budget):
    batches = plan_batches(rows, budget)
    assert sorted(row for batch in batches for row in batch) == list(range(len(rows)))
    widths = [max(rows[row] for row in batch) for batch in batches]
    assert widths == sorted(widths, reverse=True)
    for batch, width in zip(batches, widths, strict=True):
        assert len(batch) == 1 or len(batch) * width <= budget
    assert plan_batches(rows, budget) == batches
