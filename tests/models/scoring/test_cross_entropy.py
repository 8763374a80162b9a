import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from models.scoring import cross_entropy as module
from models.scoring.cross_entropy import cross_entropy, linear_cross_entropy


def in_float64(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    logits = logits.double()
    return logits.logsumexp(-1) - logits.gather(-1, targets[:, None])[:, 0]


@hypothesis_settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 40),
    vocabulary=st.integers(1, 200),
    scale=st.sampled_from([0.01, 1.0, 8.0]),
    has_bias=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_tiles_give_what_whole_rows_give(rows, vocabulary, scale, has_bias, seed):
    generator = torch.Generator().manual_seed(seed)
    states = scale * torch.randn(rows, 16, generator=generator)
    weight = torch.randn(vocabulary, 16, generator=generator)
    bias = torch.randn(vocabulary, generator=generator) if has_bias else None
    targets = torch.randint(0, vocabulary, (rows,), generator=generator)
    exact = torch.nn.functional.linear(
        states.double(), weight.double(), None if bias is None else bias.double()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CPU_COLUMNS", 32)
        patch.setattr(module, "_CPU_ROWS", 7)
        found = linear_cross_entropy(states, weight, bias, targets)
    assert found.dtype == torch.float32
    assert found.shape == (rows,)
    assert (found >= 0).all()
    torch.testing.assert_close(
        found.double(), in_float64(exact, targets), rtol=1e-6, atol=1e-6 * float(exact.abs().max())
    )


@pytest.mark.parametrize("columns", [8, 4096])
def test_tokens_that_are_ruled_out_and_broken_numbers(monkeypatch, columns):
    monkeypatch.setattr(module, "_CPU_COLUMNS", columns)
    weight = torch.zeros(24, 1)
    bias = torch.zeros(24)
    bias[:12] = -torch.inf  # a whole tile of them
    targets = torch.tensor([13])
    (found,) = linear_cross_entropy(torch.ones(1, 1), weight, bias, targets)
    assert float(found) == pytest.approx(torch.log(torch.tensor(12.0)).item(), rel=1e-6)
    for broken in (torch.nan, torch.inf):
        bias[3] = broken
        (found,) = linear_cross_entropy(torch.ones(1, 1), weight, bias, targets)
        assert not found.isfinite()


def test_the_sum_over_the_vocabulary_is_taken_in_float32_of_half_precision_logits():
    torch.manual_seed(0)
    logits = 5 * torch.randn(30, 5000)
    targets = torch.randint(0, 5000, (30,))
    for dtype in (torch.bfloat16, torch.float16):
        rounded = logits.to(dtype)
        found = cross_entropy(rounded, targets, None)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), in_float64(rounded, targets), rtol=1e-5, atol=0)
    assert cross_entropy(logits.double(), targets, None).dtype == torch.float64


def test_half_precision_weights_are_summed_in_float32():
    torch.manual_seed(0)
    states = torch.randn(30, 64).bfloat16()
    weight = torch.randn(9000, 64).bfloat16()
    targets = torch.randint(0, 9000, (30,))
    logits = torch.nn.functional.linear(states, weight)
    found = linear_cross_entropy(states, weight, None, targets)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), in_float64(logits, targets), rtol=1e-5, atol=0)
