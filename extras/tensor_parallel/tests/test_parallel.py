"""Tensor parallelism against one process with the same weights."""

import dataclasses
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import (
    Gemma2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MixtralConfig,
    Phi3Config,
    PreTrainedConfig,
    Qwen3Config,
)

from core.errors import ModelError, UsageError
from core.settings import Settings
from extras.tensor_parallel.parallel import SharedModel, start_parallel, why_unshared
from models.scoring.forward import Forward
from models.scoring.machine import active_parameters
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Tokens
from models.scoring.token_scorer import CausalLM
from models.weights.checkpoint import CheckpointFiles, open_checkpoint
from models.weights.loading import load_weights
from tests.models.conftest import SENTENCES, byte_level_bpe, llama_config, save_model

SIZES = {
    "vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
    "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0,
}  # fmt: skip
CONFIGS = {
    "tied": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "odd sizes": LlamaConfig(**{**SIZES, "vocab_size": 401, "intermediate_size": 49}),
    "capped logits": Gemma2Config(**SIZES, head_dim=8, sliding_window=16),
    "norms of heads": Qwen3Config(**SIZES, head_dim=8),
    "experts": MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2),
    "joined matrices": Phi3Config(**SIZES),
    "biases": GPTNeoXConfig(**SIZES),
}


def open_files(folder: str) -> CheckpointFiles:
    return open_checkpoint(folder, None, Settings(device="cpu"), is_trusted=False)


def made(folder: Path, config: PreTrainedConfig) -> CheckpointFiles:
    return open_files(save_model(folder, config, byte_level_bpe(), bos_token="<s>"))


def batch() -> tuple[list[Tokens], list[Tokens]]:
    """Return rows of ids of three lengths, and targets of some of their positions."""
    draw = np.random.default_rng(1)
    inputs = [draw.integers(0, 400, size) for size in (5, 40, 17)]
    targets = [draw.integers(0, 400, size) for size in (5, 30, 1)]
    return inputs, targets


def require_equal(engine: SharedModel, files: CheckpointFiles) -> None:
    alone = Forward(load_weights(files))
    inputs, targets = batch()
    for found, expected in zip(
        engine.with_moments(inputs, targets), alone.with_moments(inputs, targets), strict=True
    ):
        np.testing.assert_allclose(found.nats, expected.nats, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found.moments, expected.moments, rtol=1e-4, atol=1e-4)
    alphabet = np.arange(0, 400, 2)
    even = [2 * (each // 2) for each in targets]
    for losses, as_expected in zip(
        engine.losses(inputs, even, alphabet), alone.losses(inputs, even, alphabet), strict=True
    ):
        np.testing.assert_allclose(losses, as_expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def files(llama_folder: str) -> CheckpointFiles:
    return open_files(llama_folder)


@pytest.fixture(scope="module")
def engine(files: CheckpointFiles) -> Iterator[SharedModel]:
    engine = start_parallel(files, 2)
    yield engine
    engine.close()


def test_two_processes_give_the_losses_of_one(engine: SharedModel, files: CheckpointFiles) -> None:
    require_equal(engine, files)
    assert engine.backend == "gloo"
    assert engine.active_parameters == active_parameters(load_weights(files))


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_so_they_do_for_other_architectures(tmp_path: Path, config: PreTrainedConfig) -> None:
    files = made(tmp_path / "model", config)
    engine = start_parallel(files, 2)
    require_equal(engine, files)
    engine.close()


def test_an_error_costs_one_request(engine: SharedModel, files: CheckpointFiles) -> None:
    inputs, targets = batch()
    with pytest.raises(ModelError):
        engine.losses([], [])
    assert len(engine.losses(inputs, targets)) == 3


def test_a_process_that_ends_is_named(engine: SharedModel) -> None:
    inputs, targets = batch()
    engine.losses(inputs, targets)
    assert engine._processes is not None
    os.kill(engine._processes._processes[1].pid, signal.SIGKILL)
    with pytest.raises(ModelError, match="one of the 2 processes .* ended .*process 1: -9"):
        engine.losses(inputs, targets)
    assert len(engine.losses(inputs, targets)) == 3


def test_a_month_is_scored_with_the_same_sums(
    llama_folder: str, batch_of: Callable[..., pa.RecordBatch]
) -> None:
    sums = []
    for number in (1, 2):
        settings = Settings(device="cpu", tensor_parallel=number)
        scorer = CausalLM.load(llama_folder, None, settings)
        tables = list(scorer.score([batch_of(*SENTENCES)], get_protocol("default")))
        sums.append(pa.concat_tables(tables)["nll_nats"].to_numpy())
        assert scorer.facts.versions.get("tensor_parallel") == (
            None if number == 1 else "2 devices by gloo"
        )
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-5)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("changes", "num_devices", "reason"),
    [
        ({}, 2, None),
        ({}, 3, "3 devices cannot share num_attention_heads = 2 equally"),
        ({"num_attention_heads": 4, "num_key_value_heads": 1}, 2, "num_key_value_heads = 1"),
        ({"quantization_config": {"quant_method": "fp8"}}, 2, "quantised"),
        ({"base_model_tp_plan": None}, 2, "no plan for llama"),
    ],
)
def test_why_a_model_is_not_shared(
    files: CheckpointFiles, changes: dict[str, Any], num_devices: int, reason: str | None
) -> None:
    config = llama_config()
    for name, value in changes.items():
        setattr(config, name, value)
    found = why_unshared(dataclasses.replace(files, config=config), num_devices)
    assert found is None if reason is None else reason in str(found)


@pytest.mark.smoke
def test_gpus_that_are_not_there_are_told(files: CheckpointFiles) -> None:
    on_gpu = dataclasses.replace(files, device=torch.device("cuda"))
    number = torch.cuda.device_count() + 2
    with pytest.raises(UsageError, match=rf"PARALLEL is {number} and this process sees"):
        start_parallel(on_gpu, number)


@pytest.mark.gpu
def test_two_gpus_give_the_losses_of_a_processor(files: CheckpointFiles) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("this machine has fewer than two GPUs")
    engine = start_parallel(dataclasses.replace(files, device=torch.device("cuda")), 2)
    assert engine.backend == "nccl"
    require_equal(engine, files)
    engine.close()
