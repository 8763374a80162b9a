from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NotMeasurable
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import get_protocol
from models.scoring.windows import (
    Window,
    check_prefix,
    finish_stream,
    plan_batches,
    plan_windows,
    stream_windows,
)

lengths = st.integers(0, 400)
contexts = st.integers(2, 60)
prefixes = st.integers(0, 1)


def scored(windows: list[Window]) -> list[int]:
    return [token for window in windows for token in range(window.first, window.end)]


@given(lengths, contexts, st.data())
def test_disjoint_windows_score_every_token_once_within_their_context(n, context, data):
    num_prefix = data.draw(st.integers(0, context - 1))  # of a chat template, many
    windows = plan_windows(n, get_protocol("default", context), context, num_prefix)
    assert scored(windows) == list(range(n))
    for window in windows:
        assert window.begin == window.first
        assert window.num_prefix == num_prefix
        assert num_prefix + window.end - window.begin <= context
        assert window.is_charged == (num_prefix == 0)
    assert all(num_prefix + w.end - w.begin == context for w in windows[:-1])


@given(lengths, contexts, prefixes)
def test_a_single_window_is_the_first_of_the_disjoint_ones(n, context, num_prefix):
    [*windows] = plan_windows(n, get_protocol("whole-document"), context, num_prefix)
    assert windows == plan_windows(n, get_protocol("default"), context, num_prefix)[:1]


@given(lengths, contexts, st.data(), prefixes)
def test_sliding_windows_score_every_token_once_with_enough_context(n, context, data, num_prefix):
    stride = data.draw(st.integers(1, context - 1))
    protocol = get_protocol("sliding", context, stride)
    windows = plan_windows(n, protocol, context, num_prefix)
    assert scored(windows) == list(range(n))
    for window in windows[1:]:
        assert window.begin >= 0
        assert window.end - window.begin == context  # full, back into the text
        assert window.first - window.begin >= context - stride
        assert window.num_scored <= stride
    assert [window.num_prefix for window in windows] == [
        num_prefix if number == 0 else 0 for number in range(len(windows))
    ]
    assert sum(window.is_charged for window in windows) == (n > 0 and not num_prefix)


@given(lengths, contexts)
def test_rolling_windows_score_every_token_once_and_the_last_is_filled_up(n, context):
    windows = plan_windows(n, get_protocol("lm-eval", context), context, num_prefix=1)
    assert scored(windows) == list(range(n))
    for window in windows[1:]:
        assert window.num_inputs == context
        assert window.first - window.begin >= 1
    assert not any(window.is_charged for window in windows)


@given(lengths, st.integers(4, 60), st.integers(0, 2))
def test_uncheatable_chunks_leave_their_first_token_out(n, context, num_prefix):
    protocol = get_protocol("uncheatable-bos" if num_prefix else "uncheatable", context)
    windows = plan_windows(n, protocol, context, num_prefix)
    step = context - num_prefix
    assert scored(windows) == [token for token in range(n) if token % step]
    assert [window.end for window in windows] == [*range(step, n, step), *([n] if n else [])]
    assert not any(window.is_charged for window in windows)


@given(lengths, contexts, st.sampled_from(["default", "sliding", "uncheatable", "lm-eval"]))
def test_ends_grow_up_to_the_last_token_and_no_window_is_too_long(n, context, name):
    windows = plan_windows(n, get_protocol(name, context), context, num_prefix=1)
    ends = [window.end for window in windows]
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == n
    assert all(window.num_inputs <= context for window in windows)


def test_windows_written_out():
    assert plan_windows(5, get_protocol("default", 3), 3, num_prefix=1) == [
        Window(0, 0, 2, 1), Window(2, 2, 4, 1), Window(4, 4, 5, 1),
    ]  # fmt: skip
    assert plan_windows(9, get_protocol("sliding", 4, 2), 4, num_prefix=1) == [
        Window(0, 0, 3, 1), Window(1, 3, 5, 0), Window(3, 5, 7, 0), Window(5, 7, 9, 0),
    ]  # fmt: skip
    assert plan_windows(8, get_protocol("lm-eval", 3), 3, num_prefix=1) == [
        Window(0, 0, 3, 1), Window(2, 3, 6, 0), Window(4, 6, 8, 0),
    ]  # fmt: skip
    assert Window(4, 4, 5, 1).num_inputs == 1  # the start token alone
    assert Window(4, 4, 5, 0).num_inputs == 0  # charged, nothing to read
    assert Window(4, 5, 5, 0).num_inputs == 0  # nothing scored
    assert Window(4, 5, 5, 2).num_inputs == 0  # nor with a prefix


def stream_plan(protocol: ScoringProtocol, context: int, n: int, num_prefix: int) -> list[Window]:
    coming = stream_windows(protocol, context, num_prefix)
    windows = [each.window for each in takewhile(lambda each: each.needed <= n, coming)]
    last = windows[-1] if windows else None
    return windows + finish_stream(protocol, context, last, n, num_prefix)


@given(lengths, contexts, st.data(), prefixes)
def test_a_stream_s_windows_are_those_of_one_long_text(n, context, data, num_prefix):
    stride = data.draw(st.integers(1, context - 1))
    protocol = get_protocol("stream", context, stride)
    alike = get_protocol("sliding", context, stride)
    found = stream_plan(protocol, context, n, num_prefix)
    assert [window for window in found if window.num_scored] == plan_windows(
        n, alike, context, num_prefix
    )


@given(lengths, contexts, st.data())
def test_swce_windows_score_all_but_the_first_token_and_a_tail(n, context, data):
    stride = data.draw(st.integers(1, context - 1))
    windows = stream_plan(get_protocol("opencompass-swce", context, stride), context, n, 0)
    full = [window for window in windows if window.num_scored]
    num_windows = max(0, (n - context - 1) // stride + 1)
    assert len(full) == num_windows
    assert (
        scored(windows)
        == list(range(1, context + 1 + (num_windows - 1) * stride))[: n if num_windows else 0]
    )
    assert all(window.num_inputs == context for window in full)
    assert [window.end for window in windows][-1:] == ([n] if num_windows else [])


@given(lengths, contexts, prefixes)
def test_pieces_leave_one_token_out_and_the_last_piece(n, context, num_prefix):
    windows = stream_plan(get_protocol("llm-compressive", context), context, n, num_prefix)
    num_pieces = max(0, -(-n // context) - 1)  # the last is dropped, full or not
    left_out = context - 1 if num_prefix else 0
    assert scored(windows) == [
        token for token in range(num_pieces * context) if token % context != left_out
    ]
    assert [window.end for window in windows][-1:] == ([num_pieces * context] if num_pieces else [])


@given(lengths, contexts.filter(lambda context: context > 2), st.data(), st.integers(1, 4))
def test_sliding_pieces_score_a_stride_less_one_after_the_first_batch(n, context, data, full):
    stride = data.draw(st.integers(2, context - 1))
    protocol = get_protocol(f"llm-compressive-sw-{context}-{stride}-{full}")
    windows = stream_plan(protocol, context, n, 0)
    assert len(windows) == max(0, (n - context) // stride + 1)
    for number, window in enumerate(windows):
        assert (window.begin, window.end) == (number * stride, number * stride + context)
        assert window.num_prefix == 0
        assert window.num_scored == (context - 1 if number < full else stride - 1)


@pytest.mark.parametrize(
    ("name", "context", "num_prefix"),
    [
        ("chat", 48, 48),
        ("chat", 48, 400),
        ("default", 1, 1),
        ("uncheatable-bos-2", 2, 2),
        ("uncheatable-bos-3", 3, 2),  # one token of text, and that is not scored
        ("llm-compressive-2", 1, 1),
    ],
)
def test_a_prefix_that_leaves_nothing_to_score_is_refused(name, context, num_prefix):
    with pytest.raises(NotMeasurable, match=f"{num_prefix} tokens before each window's text"):
        check_prefix(get_protocol(name), context, num_prefix)
    check_prefix(get_protocol(name), context + 2, num_prefix if num_prefix < 100 else 0)


def test_a_prefix_may_leave_one_token_to_score():
    check_prefix(get_protocol("default"), context=2, num_prefix=1)
    check_prefix(get_protocol("llm-compressive"), context=2, num_prefix=1)
    check_prefix(get_protocol("uncheatable-bos"), context=4, num_prefix=2)


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_batches_hold_each_row_once_within_the_budget(rows, budget):
    batches = plan_batches(rows, budget)
    assert sorted(row for batch in batches for row in batch) == list(range(len(rows)))
    widths = [max(rows[row] for row in batch) for batch in batches]
    assert widths == sorted(widths, reverse=True)
    for batch, width in zip(batches, widths, strict=True):
        assert len(batch) == 1 or len(batch) * width <= budget
        assert min(rows[row] for row in batch) >= 0.8 * width
    assert plan_batches(rows, budget) == batches
