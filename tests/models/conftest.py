"""Tiny models and tokenizers, made once a session in ordinary Hugging Face folders."""

import datetime as dt
import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM as Auto
from transformers import (
    AutoTokenizer,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    OPTConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from core.corpus.questions import Question
from core.schemas.tables import LOSSES
from core.schemas.validation import validate
from core.settings import Settings
from models.scoring.protocols import get_protocol
from models.scoring.token_scorer import CausalLM
from models.weights.files import TOKENIZER_FILES
from tests.conftest import Hub

BatchOf = Callable[..., pa.RecordBatch]
CopyOf = Callable[[str], Path]

SENTENCES = [
    "The tide leaves a mark on the sand, and the next tide washes it away.",
    "Models read what was written before them; text goes on being written.",
    "Ein naïver Café-Besuch kostet 3,50 € – 早い者勝ち。 Ещё раз: привет, мир! 🙂",
    "def add(a, b):\n    return a + b  # sums\n\n\nprint(add(1, 2))",
]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Small steps on several threads are many times slower where cores are shared."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(home=str(tmp_path_factory.mktemp("home")), device="cpu")


def question(**changes: Any) -> Question:
    fields: dict[str, Any] = {
        "question_id": "q0",
        "source": "test",
        "title": "Will it rain?",
        "options": ("Yes", "No"),
        "opened_at": dt.datetime(2024, 3, 5, tzinfo=dt.UTC),
        "status": "open",
        "licence": "MIT",
    }
    return Question(**(fields | changes))


@pytest.fixture
def near(hub: Hub) -> Settings:
    return Settings(device="cpu", sites=hub.sites)


def byte_level_bpe(starts: bool = False) -> Tokenizer:
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
        tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def random_model(config: PreTrainedConfig, scale: int = 6) -> PreTrainedModel:
    torch.manual_seed(7)
    model: PreTrainedModel = Auto.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale)
    return model.eval()


def save_model(
    folder: Path,
    config: PreTrainedConfig,
    tokenizer: Tokenizer,
    scale: int = 6,
    **special: str | int,
) -> str:
    random_model(config, scale).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return str(folder)


def llama_config(**changes: object) -> LlamaConfig:
    options: dict[str, object] = {
        "vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 64, "bos_token_id": 0,
        "eos_token_id": 1,
    }  # fmt: skip
    return LlamaConfig(**(options | changes))


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    return save_model(folder, llama_config(), byte_level_bpe(), bos_token="<s>", eos_token="</s>")


@pytest.fixture(scope="session")
def tokenizer_alone(llama_folder: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of the tokenizer without weights, so that the server's own answers must do."""
    folder = tmp_path_factory.mktemp("tokenizer")
    for name in TOKENIZER_FILES:
        for path in Path(llama_folder).glob(name):
            shutil.copy(path, folder)
    return str(folder)


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
    """A model whose output head cannot run separately."""
    config = OPTConfig(
        vocab_size=400, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=2,
        word_embed_proj_dim=32, max_position_embeddings=64,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("models") / "tiny-opt"
    return save_model(folder, config, byte_level_bpe(), bos_token="<s>")


@pytest.fixture(scope="session")
def startless_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "no-start"
    return save_model(folder, llama_config(), byte_level_bpe())


@pytest.fixture(scope="session")
def mamba_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with a running state; larger weights would bring float32 off by 1e-5."""
    config = MambaConfig(vocab_size=400, hidden_size=16, num_hidden_layers=2, state_size=4)
    folder = tmp_path_factory.mktemp("models") / "tiny-mamba"
    return save_model(folder, config, byte_level_bpe(), scale=2, bos_token="<s>", eos_token="</s>")


def byte_fallback_bpe() -> Tokenizer:
    """As Llama 2: spaces become marks, one more in front; unknown characters become bytes."""
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = sorted({mark for text in SENTENCES[:2] for mark in text.replace(" ", "\u2581")})
    vocabulary = {token: number for number, token in enumerate([*tokens, *letters])}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, [], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    parts = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
    return tokenizer


@pytest.fixture(scope="session")
def bytes_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "has-bytes"
    return save_model(folder, llama_config(), byte_fallback_bpe(), bos_token="<s>")


def record_batch(count: int, **columns: pa.Array) -> pa.RecordBatch:
    first = {"document_id": [f"d{n}" for n in range(count)], "source": ["test"] * count}
    return pa.record_batch(first | {"month": pa.nulls(count, pa.date32())} | columns)


def nats(model: CausalLM, batch: pa.RecordBatch, protocol: str = "disjoint-32") -> list[float]:
    table = pa.concat_tables(model.score([batch], get_protocol(protocol)))
    return validate(table, LOSSES)["nll_nats"].to_pylist()  # type: ignore[no-any-return]


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut_off(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


class Plain:
    """A model as the peers use it: one window at a time, all logits; in float64."""

    def __init__(self, folder: str) -> None:
        self._model = Auto.from_pretrained(folder, dtype=torch.float64).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.bos = self.tokenizer.bos_token_id
        self.start = self.tokenizer.eos_token_id if self.bos is None else self.bos
        self._nats = cache(self._compute)

    def nats(self, ids: Sequence[int]) -> list[float]:
        """Return -ln p of each token but the first, given the tokens before it."""
        return self._nats(tuple(ids)) if len(ids) > 1 else []

    @torch.no_grad()
    def _compute(self, ids: tuple[int, ...]) -> list[float]:
        window = torch.tensor([ids])
        log = self._model(input_ids=window, use_cache=False).logits[0, :-1].log_softmax(-1)
        return (-log.gather(-1, window[0, 1:, None])[:, 0]).tolist()  # type: ignore[no-any-return]

    def ids(self, text: str, special: bool) -> list[int]:
        return self.tokenizer(text, add_special_tokens=special)["input_ids"]  # type: ignore[no-any-return]


def set_template(folder: Path, template: str) -> Any:
    """Give a tokenizer a chat template, and return it."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return tokenizer


def adapter_of(base: str, folder: Path) -> Path:
    folder.mkdir()
    config = f'{{"base_model_name_or_path": "{base}", "peft_type": "LORA"}}'
    (folder / "adapter_config.json").write_text(config)
    (folder / "adapter_model.safetensors").write_bytes(b"x")
    return folder


@pytest.fixture(scope="session")
def media_of() -> BatchOf:
    return lambda *contents: record_batch(
        len(contents),
        media=pa.array(contents, pa.large_binary()),
        width=pa.array([2] * len(contents), pa.int32()),
    )


@pytest.fixture(scope="session")
def batch_of() -> BatchOf:
    return lambda *texts: record_batch(len(texts), text=pa.array(texts, pa.large_string()))


@pytest.fixture
def copy_of(tmp_path: Path) -> CopyOf:
    def copy(folder: str) -> Path:
        target = tmp_path / Path(folder).name
        target.mkdir()
        for path in Path(folder).iterdir():
            (target / path.name).write_bytes(path.read_bytes())
        return target

    return copy


@pytest.fixture
def folder(llama_folder: str, copy_of: CopyOf) -> Path:
    """A copy of the tiny Llama, which the test may change."""
    return copy_of(llama_folder)
