"""Inputs of the scoring benchmarks: models with random weights, and texts of mixed length.

Speed does not depend on the weights, so no weights are downloaded. Texts are simulated stories. The
tokenizer has 2,048 tokens, also for models with a larger vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from core.month import Month
from simulator.world import World


@dataclass(frozen=True)
class Shape:
    """A model's configuration: ``model_type`` of transformers and keyword arguments ``sizes``."""

    model_type: str
    sizes: Mapping[str, int]

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {size:,}" for name, size in self.sizes.items())
        return f"{self.model_type} with {sizes}"

    def config(self) -> PreTrainedConfig:
        """Return the configuration; token 0, the only special token, marks both ends of a text."""
        config: PreTrainedConfig = AutoConfig.for_model(
            self.model_type, bos_token_id=0, eos_token_id=0, **self.sizes
        )
        return config


def _llama(hidden: int, inner: int, layers: int, heads: tuple[int, int], vocabulary: int) -> Shape:
    """Return the sizes of a Llama model; ``heads`` are those of queries and of keys."""
    sizes = {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "vocab_size": vocabulary,
        "max_position_embeddings": 4096,
    }
    return Shape("llama", sizes)


SHAPES = {
    "gpt2-small": Shape(
        "gpt2",
        {"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50_257},
    ),
    "llama-128k": _llama(512, 1536, 4, (8, 8), 128_256),
    "llama-100m": _llama(768, 2048, 12, (12, 12), 32_000),
    "llama-1b": _llama(2048, 8192, 16, (32, 8), 128_256),  # Llama 3.2 1B with untied embeddings
    "llama-7b": _llama(4096, 11_008, 32, (32, 32), 32_000),  # sizes of Llama 2 7B
    # Gemma 3 270M, whose head is two thirds of its weights
    "gemma-270m": Shape(
        "gemma3_text",
        {
            "hidden_size": 640,
            "intermediate_size": 2048,
            "num_hidden_layers": 18,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "vocab_size": 262_144,
            "max_position_embeddings": 32_768,
            "sliding_window": 512,
        },
    ),
    "llama-50m": _llama(512, 1408, 8, (8, 8), 32_000),
    "llama-tiny": _llama(128, 256, 4, (4, 4), 2048),
    "llama-toy": _llama(32, 64, 2, (2, 2), 2048),  # for a quick trial of the benchmarks
}
_END = "<|endoftext|>"
_TOKENIZER_TOKENS = 2048  # size of the tokenizer; every model's vocabulary must be as large
# Number of stories per text; after eight texts, the numbers repeat. A story has about 200 tokens.
# With these lengths, lm-eval processes 22 to 25 % of the tokens twice, as on real corpora (24 %).
_NUM_STORIES = (13, 2, 3, 20, 6, 8, 4, 10)
_MONTH = Month("2024-02")


def make_texts(num_texts: int) -> list[str]:
    """Return texts of about 400 to 4,300 tokens."""
    lengths = list(islice(cycle(_NUM_STORIES), num_texts))
    world = World(0, _MONTH, _MONTH, stories_per_month=sum(lengths))
    stories = iter("\n\n".join(story.paragraphs) for story in world.stories(_MONTH, "texts"))
    return ["\n\n".join(islice(stories, length)) for length in lengths]


def make_model(shape: Shape, device: str, dtype: torch.dtype) -> PreTrainedModel:
    """Return a model with random weights of a fixed seed, on a device."""
    torch.manual_seed(0)
    with torch.device(device):
        model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            shape.config(), dtype=dtype, attn_implementation="sdpa"
        )
    ready: PreTrainedModel = model.eval()
    return ready


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer trained on the first eight texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_TOKENIZER_TOKENS,
        special_tokens=[_END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(make_texts(len(_NUM_STORIES)), trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token=_END
    )


def save_model(folder: Path, shape: Shape) -> None:
    """Save a float32 model with random weights, and its tokenizer, as a checkpoint."""
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    make_model(shape, "cpu", torch.float32).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
