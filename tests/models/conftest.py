"""Tiny models and tokenizers, made once a session in ordinary Hugging Face folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import AutoModelForCausalLM as Auto
from transformers import (
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    OPTConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
)

from core.settings import Settings

SENTENCES = [
    "The tide leaves a mark on the sand, and the next tide washes it away.",
    "Models read what was written before them; text goes on being written.",
    "Ein naïver Café-Besuch kostet 3,50 € – 早い者勝ち。 Ещё раз: привет, мир! 🙂",
    "def add(a, b):\n    return a + b  # sums\n\n\nprint(add(1, 2))",
]


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(home=str(tmp_path_factory.mktemp("home")), device="cpu")


def byte_level_bpe(starts: bool = False) -> Tokenizer:
    """A small byte-level BPE; ``starts``: it adds its start token by itself."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    if starts:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    return tokenizer


def save_model(
    folder: Path, config: PreTrainedConfig, tokenizer: Tokenizer, scale: int = 6, **special: str
) -> str:
    """Write a random model (weights large enough to have opinions) with its tokenizer."""
    torch.manual_seed(7)
    model = Auto.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale)
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return str(folder)


def llama_config(**changes: object) -> LlamaConfig:
    options: dict[str, object] = {
        "vocab_size": 400,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    return LlamaConfig(**(options | changes))


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    return save_model(folder, llama_config(), byte_level_bpe(), bos_token="<s>", eos_token="</s>")


@pytest.fixture(scope="session")
def starting_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "adds-bos"
    return save_model(folder, llama_config(), byte_level_bpe(starts=True), bos_token="<s>")


@pytest.fixture(scope="session")
def gpt2_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    config = GPT2Config(vocab_size=400, n_embd=32, n_layer=2, n_head=2, n_positions=48)
    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    return save_model(folder, config, byte_level_bpe(), eos_token="</s>")


@pytest.fixture(scope="session")
def opt_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose head cannot be run by itself."""
    config = OPTConfig(
        vocab_size=400,
        hidden_size=32,
        ffn_dim=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
    )
    folder = tmp_path_factory.mktemp("models") / "tiny-opt"
    return save_model(folder, config, byte_level_bpe(), bos_token="<s>")


@pytest.fixture(scope="session")
def startless_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "no-start"
    return save_model(folder, llama_config(), byte_level_bpe())


@pytest.fixture(scope="session")
def mamba_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model without a maximum context, whose state runs on.

    With weights as large as the others' it is chaotic: float32 is then off by 1e-5.
    """
    config = MambaConfig(vocab_size=400, hidden_size=16, num_hidden_layers=2, state_size=4)
    folder = tmp_path_factory.mktemp("models") / "tiny-mamba"
    return save_model(folder, config, byte_level_bpe(), scale=2, bos_token="<s>", eos_token="</s>")


def byte_fallback_bpe() -> Tokenizer:
    """As Llama 2: marks for spaces, one more in front, and a token for every byte."""
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = sorted({mark for text in SENTENCES[:2] for mark in text.replace(" ", "\u2581")})
    vocabulary = {token: number for number, token in enumerate([*tokens, *letters])}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, [], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


@pytest.fixture(scope="session")
def bytes_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with a token for every byte."""
    folder = tmp_path_factory.mktemp("models") / "has-bytes"
    return save_model(folder, llama_config(), byte_fallback_bpe(), bos_token="<s>")


@pytest.fixture(scope="session")
def media_of() -> Callable[..., pa.RecordBatch]:
    """Make images d0, d1, … without a month, two pixels wide, of their bytes."""

    def batch(*contents: bytes) -> pa.RecordBatch:
        return pa.record_batch(
            {
                "document_id": [f"d{index}" for index in range(len(contents))],
                "source": ["test"] * len(contents),
                "month": pa.nulls(len(contents), pa.date32()),
                "media": pa.array(contents, pa.large_binary()),
                "width": pa.array([2] * len(contents), pa.int32()),
            }
        )

    return batch


@pytest.fixture
def copy_of(tmp_path: Path) -> Callable[[str], Path]:
    """Copy a model's folder, to break it."""

    def copy(folder: str) -> Path:
        target = tmp_path / Path(folder).name
        target.mkdir()
        for path in Path(folder).iterdir():
            (target / path.name).write_bytes(path.read_bytes())
        return target

    return copy


@pytest.fixture(scope="session")
def batch_of() -> Callable[..., pa.RecordBatch]:
    """Make documents d0, d1, … without a month of texts."""

    def batch(*texts: str) -> pa.RecordBatch:
        return pa.record_batch(
            {
                "document_id": [f"d{index}" for index in range(len(texts))],
                "source": ["test"] * len(texts),
                "month": pa.nulls(len(texts), pa.date32()),
                "text": pa.array(texts, pa.large_string()),
            }
        )

    return batch
