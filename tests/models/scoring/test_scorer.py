import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scoring.accounting import TokenizedText
from models.scoring.scorer import MILESTONES, Tally


def document(num_tokens: int, seed: int) -> tuple[TokenizedText, list[np.ndarray]]:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, num_tokens)
    tokens = TokenizedText(
        ids=np.zeros(num_tokens, dtype=np.int64),
        chars=np.concatenate([[0], np.cumsum(np.minimum(sizes, 2))]),
        bytes=np.concatenate([[0], np.cumsum(sizes)]),
    )
    return tokens, np.array_split(random.exponential(3, num_tokens), random.integers(1, 6))


@given(st.lists(st.tuples(st.integers(1, 2100), st.integers(0, 99)), max_size=6))
def test_milestones_are_sums_over_the_documents_that_are_long_enough(shapes):
    documents = [document(*shape) for shape in shapes]
    tally = Tally()
    for tokens, losses in documents:
        tally.add_beginnings(tokens, losses)
    found = tally.milestones()
    longest = max((len(tokens.ids) for tokens, _ in documents), default=0)
    assert [each.milestone for each in found] == [m for m in MILESTONES if m <= longest]
    for each in found:
        length = each.milestone
        enough = [(t, np.concatenate(nats)) for t, nats in documents if len(t.ids) >= length]
        assert each.num_documents == len(enough)
        expected = math.fsum(nats[token] for _, nats in enough for token in range(length))
        assert each.nll_nats == pytest.approx(expected, rel=1e-12)
        assert each.num_chars == sum(tokens.chars[length] for tokens, _ in enough)
        assert each.num_bytes == sum(tokens.bytes[length] for tokens, _ in enough)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_none_ends_the_milestones_before_it(bad):
    tokens, losses = document(120, 1)
    nats = np.concatenate(losses)
    nats[40] = bad
    tally = Tally()
    tally.add_beginnings(tokens, [nats[:30], nats[30:]])
    assert [each.milestone for each in tally.milestones()] == [10, 30]
    tally.add_beginnings(*document(60, 2))
    assert [each.num_documents for each in tally.milestones()] == [2, 2, 1]


def test_the_lengths_are_those_of_freshbench():
    assert MILESTONES == (10, 30, 50, 100, 200, 300, 400, 500, 800, 1000, 1200, 1500, 2000)
