"""Fused kernels and graphs are used only where they give the plain results."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from core.settings import Settings
from extras.fast_kernels.kernels import (
    Fast,
    Fused,
    Replayed,
    Run,
    _find_fused,
    agrees,
    bucket_of,
    exact_losses,
    fast_for,
    keep_equal,
    quicken,
)
from models.scoring.cross_entropy import linear_cross_entropy
from models.scoring.engines import _quicken
from models.scoring.forward import Forward
from models.scoring.token_scorer import CausalLM
from models.weights.checkpoint import open_checkpoint
from tests.models.conftest import llama_config, random_model
from tests.models.scoring.test_lengths import longrope

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
FUSED: Fused = exact_losses  # in float64, so it agrees whatever the plain form does


def eager(run: Run, ids: torch.Tensor) -> Run:
    """Stand in for a graph: it takes one shape only, as a graph does."""
    shape = ids.shape

    def replay(others: torch.Tensor) -> torch.Tensor:
        assert others.shape == shape
        return run(others)

    return replay


def broken(run: Run, ids: torch.Tensor) -> Run:
    return lambda others: run(others) * 1.01


def forward_of(folder: str) -> Forward:
    return Forward(AutoModelForCausalLM.from_pretrained(folder).eval())


def head(bias: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    torch.manual_seed(0)
    own = torch.randn(9001) if bias else None
    return torch.randn(40, 64), torch.randn(9001, 64), own


@pytest.mark.parametrize("bias", [False, True])
def test_exact_losses_are_those_of_torch(bias: bool) -> None:
    states, weight, own = head(bias)
    targets = torch.arange(40) * 200
    logits = torch.nn.functional.linear(
        states.double(), weight.double(), None if own is None else own.double()
    )
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    assert exact_losses(states, weight, own, targets).numpy() == pytest.approx(expected.numpy())


def test_a_kernel_agrees_to_a_millionth() -> None:
    states, weight, bias = head(bias=True)
    assert agrees(linear_cross_entropy, states, weight, bias)  # our chunked form passes its test
    for share in (1 + 1e-5, float("nan")):
        assert not agrees(lambda *given, by=share: FUSED(*given) * by, states, weight, bias)
    assert not agrees(lambda *given: FUSED(*given)[:-1], states, weight, bias)
    assert not agrees(lambda *given: FUSED(*given).bfloat16(), states, weight, bias)


def test_losses_by_fast_means_are_the_plain_ones(llama_folder: str) -> None:
    plain = forward_of(llama_folder)
    fast = forward_of(llama_folder)
    assert keep_equal(fast, Fast(FUSED, eager, 64)) == {"head": "fused", "body": "CUDA graphs"}
    draws = np.random.default_rng(0)
    rows = [draws.integers(0, 300, size) for size in (61, 60, 58, 9, 30)]
    for some in (rows[:3], rows[3:], rows):
        given = [row[:-1] for row in some], [row[1:] for row in some]
        for found, expected in zip(fast.losses(*given), plain.losses(*given), strict=True):
            assert found == pytest.approx(expected, rel=2e-6)
    assert isinstance(fast.replayed, Replayed)
    assert list(fast.replayed._graphs) == [(2, 64), (3, 64), (5, 64)]


@pytest.mark.parametrize(
    "fast",
    [
        Fast(lambda *given: FUSED(*given) + 1e-3, broken),
        Fast(lambda *given: 1 / 0, lambda run, ids: run(ids.float())),
        Fast(),
    ],
)
def test_means_that_give_other_results_are_left_out(fast: Fast, llama_folder: str) -> None:
    forward = forward_of(llama_folder)
    try:
        means = keep_equal(forward, fast)
    except ZeroDivisionError:
        pytest.fail("a kernel that fails must not end the loading")
    assert means == {"head": "chunked", "body": "eager"}


@pytest.mark.smoke
@pytest.mark.parametrize("rows", [1, 3, 8, 13, 100])
@pytest.mark.parametrize("width", [1, 63, 65, 500, 1023, 2047])
def test_buckets_are_little_larger_and_few(rows: int, width: int) -> None:
    more, wider = bucket_of(rows, width, 2048)
    assert rows <= more <= rows * 9 / 8 + 1 and width <= wider <= max(width + 63, width * 9 / 8)
    assert bucket_of(more, wider, 2048) == (more, wider)
    assert bucket_of(rows, width, width) == (more, width)  # no position beyond the longest
    assert len({bucket_of(8, each, None) for each in range(1, 4097)}) < 50


def test_only_so_many_graphs_are_kept() -> None:
    captured = []

    def capture(run: Run, ids: torch.Tensor) -> Run:
        captured.append(tuple(ids.shape))
        return run

    replayed = Replayed(lambda ids: ids[..., None], capture)
    for rows in range(1, 100):
        ids = torch.ones(rows, 64)
        assert replayed(ids).shape == (rows, 64, 1)
    assert len(captured) == len(set(captured)) <= 32


def test_without_a_gpu_there_are_no_means(llama_folder: str, settings: Settings) -> None:
    assert fast_for(torch.device("cpu"), 10, None) == Fast()
    fast = settings.model_copy(update={"kernels": "fast"})
    one, other = (CausalLM.identify(llama_folder, None, each) for each in (settings, fast))
    assert one.numerics == other.numerics
    facts = CausalLM.load(llama_folder, None, fast).facts
    assert "head" not in facts.versions
    assert facts.active_parameters and facts.matmul_flops


@CUDA
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_fused_kernel_of_this_machine_agrees(dtype: torch.dtype) -> None:
    fused = _find_fused()
    if fused is None:
        pytest.skip("cut-cross-entropy is not installed")
    states, weight, _ = (None if each is None else each.cuda().to(dtype) for each in head())
    assert agrees(fused, states, weight, None)


@CUDA
def test_graphs_of_this_machine_give_the_eager_states(llama_folder: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(llama_folder).cuda().eval()
    assert quicken(Forward(model), 64)["body"] == "CUDA graphs"


def test_a_loaded_model_names_its_kernels(llama_folder: str, settings: Settings) -> None:
    files = open_checkpoint(llama_folder, None, settings)
    assert _quicken(forward_of(llama_folder), files) == {"head": "chunked", "body": "eager"}


def test_a_model_whose_frequencies_depend_on_the_length_has_no_graphs() -> None:
    fast = Fast(capture=lambda run, ids: run)
    assert keep_equal(Forward(random_model(llama_config())), fast)["body"] == "CUDA graphs"
    assert keep_equal(Forward(random_model(longrope())), fast)["body"] == "eager"
