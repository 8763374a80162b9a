"""Reference models: small language models trained up to a known month.

Reference models test if tidemark finds a known cutoff. They are trained on the corpus up to a month
and scored like any other model. The bits per byte must rise after that month.

The model is a transformer of the Llama architecture with its own byte-level BPE (Radford et al.
2019), both trained only on the corpus. The training data are windows of the default protocol: a
start token, then text of one document.

A killed run resumes from its last checkpoint. On the same machine with the same number of threads,
its weights equal those of an uninterrupted run. The data of a step depend only on seed and step.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from safetensors import SafetensorError
from torch import nn
from torch.nn import functional
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from core.corpus.partition import Seal
from core.errors import StorageError, UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store, explain_disk_errors
from extras.reference_models.packing import (
    END,
    END_ID,
    IGNORED,
    START,
    START_ID,
    PackedCorpus,
    pack_corpus,
    write_durably,
)
from models.catalogue import REFERENCE_FILE, ModelEntry, entry_of_folder
from models.weights.checkpoint import choose_device

Progress = Callable[[int, int], None]

_VERSION = 1  # increase if a change here or in packing.py changes the weights
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)  # compressors have other names (with a colon)
_CHECKPOINT_SECONDS = 10.0
_WARM_UP = 0.05  # share of the steps in which the learning rate rises


@dataclass(frozen=True)
class Recipe:
    """All inputs that determine a reference model's weights, except the documents.

    The defaults suit about a megabyte of text. An epoch then takes seconds on two cores.

    Attributes:
        seed: seed of the initial weights and of the order of the windows.
        vocabulary_size: maximum size of the BPE's vocabulary, with 256 bytes and 2 special tokens.
        context: longest window in tokens, its start token included.
    """

    name: str
    cutoff: Month
    seed: int = 0
    vocabulary_size: int = 2048
    layers: int = 2
    hidden: int = 128
    heads: int = 4
    context: int = 256
    epochs: int = 2
    batch: int = 8
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r} cannot name a reference model; use letters, digits, '.', '_', '-', "
                "and a letter or digit first"
            )
        smallest = {
            "seed": 0, "vocabulary_size": 258, "layers": 1, "hidden": 2, "heads": 1, "context": 2,
            "epochs": 1, "batch": 1,
        }  # fmt: skip
        for field, least in smallest.items():
            if getattr(self, field) < least:
                raise UsageError(f"a recipe's {field} must be at least {least}")
        if self.hidden % (2 * self.heads):
            raise UsageError("a recipe's hidden must be a multiple of twice its heads")
        if not 0 < self.learning_rate < 1:
            raise UsageError("a recipe's learning_rate must lie between 0 and 1")


def train_reference(
    seals: Sequence[Seal],
    store: Store,
    folder: Path,
    recipe: Recipe,
    settings: Settings,
    progress: Progress | None = None,
) -> ModelEntry:
    """Train a reference model in float32, or return an existing model with the same inputs.

    The folder is created only when all its files are complete, including ``tidemark.json``.

    Raises:
        UsageError: a partition is no text, undated or after the cutoff; there is no text; or the
            folder has an invalid name or other content.
        StorageError: a partition is damaged, or the folder cannot be written.
    """
    plan = _plan(seals, recipe)
    _check_folder(folder, recipe)
    with explain_disk_errors(str(folder)):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # A second process for the same model waits here, and then finds the finished model.
        with FileLock(folder.parent / f".{folder.name}.lock"):
            work = folder.parent / f".{folder.name}.training"
            if not _is_trained(folder, plan):
                _open_work(work, plan)
                ordered = sorted(seals, key=lambda seal: seal.partition)
                corpus = pack_corpus(work, ordered, store, recipe.vocabulary_size, recipe.context)
                model = _train(work, corpus, recipe, settings, progress)
                _publish(work, folder, model, corpus, plan)
            shutil.rmtree(work, ignore_errors=True)
    return entry_of_folder(folder)


def _plan(seals: Sequence[Seal], recipe: Recipe) -> dict[str, object]:
    """Return all inputs that determine the weights (the plan), as stored in tidemark.json."""
    for seal in seals:
        if not seal.is_text:
            raise UsageError(
                f"reference model {recipe.name} learns text, and the partition {seal.partition} "
                f"holds {seal.content}; leave it out"
            )
        month = seal.partition.month
        if month is None or month > recipe.cutoff:
            raise UsageError(
                f"reference model {recipe.name} has its cutoff at {recipe.cutoff}, so it must not "
                f"read the partition {seal.partition}; give it dated partitions up to the cutoff"
            )
    if not any(seal.num_bytes for seal in seals):
        raise UsageError(
            f"there is no text up to {recipe.cutoff} to train reference model {recipe.name} on; "
            "crawl or import earlier months first"
        )
    partitions = [
        {"source": seal.partition.source, "month": str(seal.partition.month), "digest": seal.digest}
        for seal in sorted(seals, key=lambda seal: seal.partition)
    ]
    described = dataclasses.asdict(recipe) | {"cutoff": str(recipe.cutoff)}
    return {"version": _VERSION, "recipe": described, "partitions": partitions}


def _check_folder(folder: Path, recipe: Recipe) -> None:
    """Raise an error unless the folder has the model's name, and no foreign content."""
    if folder.name != recipe.name:
        raise UsageError(
            f"the folder {folder} must end in the model's name, {recipe.name}: "
            "a local model is named by its folder"
        )
    if folder.exists() and not (folder / REFERENCE_FILE).is_file():
        raise UsageError(
            f"{folder} exists and tidemark did not train it; choose another name or move it away"
        )


def _is_trained(folder: Path, plan: dict[str, object]) -> bool:
    """Return True if the folder has a model that was trained by this plan."""
    path = folder / REFERENCE_FILE
    if not path.is_file():
        return False
    try:
        record = json.loads(path.read_bytes())
        return {key: record.get(key) for key in plan} == plan
    except (ValueError, AttributeError):  # a damaged file: train the model again
        return False


def _open_work(work: Path, plan: dict[str, object]) -> None:
    """Make the working folder; empty it if it belongs to another plan."""
    path = work / "plan.json"
    text = json.dumps(plan, indent=2).encode()
    if not path.is_file() or path.read_bytes() != text:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        write_durably(path, text)


def _build_model(recipe: Recipe, vocabulary_size: int) -> LlamaForCausalLM:
    """Return a Llama model with random weights of the recipe's seed."""
    config = LlamaConfig(
        vocab_size=vocabulary_size,
        hidden_size=recipe.hidden,
        intermediate_size=2 * recipe.hidden,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=recipe.context,
        tie_word_embeddings=True,
        bos_token_id=START_ID,
        eos_token_id=END_ID,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return LlamaForCausalLM(config)


def _train(
    work: Path, corpus: PackedCorpus, recipe: Recipe, settings: Settings, progress: Progress | None
) -> LlamaForCausalLM:
    """Train a model from its last checkpoint to the end; return it."""
    device, _ = choose_device(settings)
    model = _build_model(recipe, corpus.tokenizer.get_vocab_size())
    nn.Module.to(model, device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.95), fused=True
    )
    checkpoint = work / "checkpoint.pt"
    step = _restore(checkpoint, model, optimizer)
    steps_per_epoch = -(-len(corpus.bounds) // recipe.batch)
    total = recipe.epochs * steps_per_epoch
    saved_at = time.monotonic()
    for epoch in range(step // steps_per_epoch, recipe.epochs):
        for rows in corpus.epoch(recipe.batch, recipe.seed, epoch)[step % steps_per_epoch :]:
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * _schedule(step, total)
            inputs, targets = corpus.tensors(rows)
            _learn(model, optimizer, inputs.to(device), targets.to(device))
            step += 1
            if progress is not None:
                progress(step, total)
            if step == total or time.monotonic() - saved_at > _CHECKPOINT_SECONDS:
                _save(checkpoint, model, optimizer, step)
                saved_at = time.monotonic()
    return model


def _schedule(step: int, total: int) -> float:
    """Return the factor of the learning rate: linear warm-up, then a cosine down to 0.1."""
    warm_up = max(1, round(_WARM_UP * total))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.55 + 0.45 * math.cos(math.pi * (step - warm_up) / (total - warm_up))


def _learn(
    model: LlamaForCausalLM,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> None:
    """Take one step of the optimizer on a batch of windows."""
    # Padding is on the right, where causal attention hides it from all counted tokens.
    states = model.model(input_ids=inputs, use_cache=False).last_hidden_state  # (batch, T, hidden)
    counts = targets != IGNORED  # (batch, T); T: length of the longest window
    loss = functional.cross_entropy(model.lm_head(states[counts]), targets[counts])
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _save(path: Path, model: LlamaForCausalLM, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Write a checkpoint; it needs no random state, because only initial weights are random."""
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    buffer = io.BytesIO()  # torch.save to a full disk raises no OSError
    torch.save(state, buffer)
    write_durably(path, buffer.getvalue())


def _restore(path: Path, model: LlamaForCausalLM, optimizer: torch.optim.Optimizer) -> int:
    """Load the last checkpoint; return the number of its step, 0 without one."""
    if not path.is_file():
        return 0
    state = torch.load(path, map_location=model.device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def _publish(
    work: Path, folder: Path, model: LlamaForCausalLM, corpus: PackedCorpus, plan: dict[str, object]
) -> None:
    """Save the model, its tokenizer and its record to the folder, all at once."""
    recipe: Any = plan["recipe"]
    ready = work / "model"
    shutil.rmtree(ready, ignore_errors=True)
    nn.Module.to(model, "cpu")
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        bos_token_id=START_ID, eos_token_id=END_ID
    )
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model.save_pretrained(ready)
    except SafetensorError as error:  # safetensors raises it if the disk is full
        raise StorageError(f"cannot write the weights to {ready}: {error}") from error
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=corpus.tokenizer,
        bos_token=START,
        eos_token=END,
        model_max_length=recipe["context"],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.save_pretrained(ready)
    record = {
        "name": folder.name,
        "cutoff": recipe["cutoff"],
        "provenance": "planted",
        "seed": recipe["seed"],
        "num_parameters": model.num_parameters(),
        "num_tokens_seen": recipe["epochs"] * len(corpus.tokens),
        **plan,
    }
    write_durably(ready / REFERENCE_FILE, json.dumps(record, indent=2).encode())
    if folder.exists():  # the folder contains a model that was trained from other inputs
        folder.rename(work / "replaced")
    ready.rename(folder)
