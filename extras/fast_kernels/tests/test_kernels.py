"""Graphs are used only where they give the plain results."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from core.settings import Settings
from extras.fast_kernels.kernels import (
    Fast,
    Replayed,
    Run,
    bucket_of,
    fast_for,
    keep_equal,
    quicken,
)
from models.scoring.engines import _quicken
from models.scoring.forward import Forward
from models.scoring.token_scorer import CausalLM
from models.weights.checkpoint import open_checkpoint
from tests.models.conftest import llama_config, random_model
from tests.models.scoring.test_lengths import longrope

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


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


def test_losses_by_fast_means_are_the_plain_ones(llama_folder: str) -> None:
    plain = forward_of(llama_folder)
    fast = forward_of(llama_folder)
    assert keep_equal(fast, Fast(eager, 64)) == {"body": "CUDA graphs"}
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
        Fast(broken),
        Fast(lambda run, ids: lambda others: run(others.float())),
        Fast(lambda run, ids: 1 / 0),  # type: ignore[arg-type, return-value]
        Fast(),
    ],
)
def test_means_that_give_other_results_are_left_out(fast: Fast, llama_folder: str) -> None:
    forward = forward_of(llama_folder)
    assert keep_equal(forward, fast) == {"body": "eager"}
    assert forward.replayed is None


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
    assert "body" not in facts.versions
    assert facts.active_parameters and facts.matmul_flops


@CUDA
def test_graphs_of_this_machine_give_the_eager_states(llama_folder: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(llama_folder).cuda().eval()
    assert quicken(Forward(model), 64)["body"] == "CUDA graphs"


def test_a_loaded_model_names_its_kernels(llama_folder: str, settings: Settings) -> None:
    files = open_checkpoint(llama_folder, None, settings)
    assert _quicken(forward_of(llama_folder), files) == {"body": "eager"}


def test_a_model_whose_frequencies_depend_on_the_length_has_no_graphs() -> None:
    fast = Fast(capture=lambda run, ids: run)
    assert keep_equal(Forward(random_model(llama_config())), fast)["body"] == "CUDA graphs"
    assert keep_equal(Forward(random_model(longrope())), fast)["body"] == "eager"
