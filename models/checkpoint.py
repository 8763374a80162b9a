"""Checkpoints: a model's folder, from this machine or the hub, checked before it is believed.

Everything comes from one folder of ordinary Hugging Face files. No code from it is ever run, and
weights are safetensors unless the settings allow pickles.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from core.errors import ModelLoadError, NotMeasurable, UsageError
from core.settings import Settings

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "*.model",
    "*.tiktoken",
)
_WEIGHT_FILES = ("model*.safetensors", "model*.safetensors.index.json")
_PICKLE_FILES = ("pytorch_model*.bin", "pytorch_model*.bin.index.json")

# The names by which configurations state the longest sequence.
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_seq_length")
_UNLIMITED = 10**9  # tokenizers without a limit state a huge one


@dataclass(frozen=True)
class CheckpointFiles:
    """A model's files, opened and checked, its weights not yet read.

    Attributes:
        location: the folder or hub id that was asked for.
        folder: where the files are on this machine.
        revision: commit of the hub, or digest of the folder's files.
        config: of a causal language model.
        tokenizer: a fast one.
        context: most tokens the model takes at once; None where it has no maximum.
        device: where the model will run.
        dtype: of its weights then.
        attention: the implementation of attention that it will use.
        allow_pickle: whether weights may be other than safetensors.
    """

    location: str
    folder: Path
    revision: str
    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerFast
    context: int | None
    device: torch.device
    dtype: torch.dtype
    attention: str
    allow_pickle: bool


def open_checkpoint(location: str, revision: str | None, settings: Settings) -> CheckpointFiles:
    """Open a causal language model's files, without its weights.

    Args:
        location: a folder, or a hub id such as ``EleutherAI/pythia-160m``.
        revision: a commit, tag or branch of the hub; for a folder, the digest it must have.
        settings: device, dtype, allow_pickle_weights.

    Raises:
        ModelLoadError: files are missing, unsafe or broken.
        NotMeasurable: this is no causal language model, or its tokenizer is not a fast one.
        UsageError: the device or dtype of the settings cannot be had.
    """
    device, dtype = choose_device(settings)
    patterns: tuple[str, ...] = (*_TOKENIZER_FILES, *_WEIGHT_FILES)
    if settings.allow_pickle_weights:
        patterns += _PICKLE_FILES
    folder = Path(location).expanduser()
    if folder.is_dir():
        found = folder_digest(folder, patterns)
        if revision is not None and revision != found:
            raise ModelLoadError(
                f"{location}: the files have digest {found}, expected {revision}; "
                "they changed since the model was added, so add it again"
            )
    else:
        folder = _download(location, revision, patterns)
        found = folder.name  # the hub's cache names a snapshot by its commit
    config = _load_config(folder, location)
    _refuse_non_causal(config, location)
    tokenizer = _load_tokenizer(folder, location)
    return CheckpointFiles(
        location=location,
        folder=folder,
        revision=found,
        config=config,
        tokenizer=tokenizer,
        context=_context(config, tokenizer),
        device=device,
        dtype=dtype,
        attention=_attention(config),
        allow_pickle=settings.allow_pickle_weights,
    )


def load_weights(files: CheckpointFiles) -> PreTrainedModel:
    """Load the weights: a model in evaluation mode, on its device, in its dtype.

    Raises:
        ModelLoadError: weights are missing, unsafe, broken or do not fit the tokenizer.
    """
    location = files.location
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            files.folder,
            config=files.config,
            dtype=files.dtype,
            attn_implementation=files.attention,
            use_safetensors=None if files.allow_pickle else True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        hint = (
            ""
            if files.allow_pickle
            else "; weights must be safetensors (allow_pickle_weights is off)"
        )
        raise ModelLoadError(
            f"{location}: the weights cannot be loaded ({_first_line(error)}){hint}"
        ) from error
    model, report = loaded
    if missing := sorted(report["missing_keys"]):
        raise ModelLoadError(
            f"{location}: {len(missing)} tensors are missing from the weights, the first is "
            f"{missing[0]}; the model would be scored with random numbers in their place"
        )
    rows = embedding_rows(model)
    if (largest := max(files.tokenizer.get_vocab().values(), default=-1)) >= rows:
        raise ModelLoadError(
            f"{location}: the tokenizer has token ids up to {largest} and the embedding {rows} "
            "rows; tokenizer and weights are not of the same model"
        )
    ready: PreTrainedModel = model.to(files.device).eval()
    return ready


def _attention(config: PreTrainedConfig) -> str:
    """Choose the implementation by name, so that a cell's hash can name it without weights."""
    model_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return "sdpa" if getattr(model_class, "_supports_sdpa", False) else "eager"


def embedding_rows(model: PreTrainedModel) -> int:
    """Return how many token ids the model has an embedding for."""
    weight = model.get_input_embeddings().weight
    assert isinstance(weight, torch.Tensor)  # noqa: S101
    return weight.shape[0]


def choose_device(settings: Settings) -> tuple[torch.device, torch.dtype]:
    """Return the device and dtype that the settings ask for.

    Raises:
        UsageError: there is no such device or dtype here.
    """
    has_cuda = torch.cuda.is_available()
    try:
        device = torch.device(
            ("cuda" if has_cuda else "cpu") if settings.device == "auto" else settings.device
        )
    except RuntimeError as error:
        raise UsageError(
            f"TIDEMARK_DEVICE={settings.device!r} is no torch device; use auto, cpu or cuda"
        ) from error
    if device.type == "cuda" and not has_cuda:
        raise UsageError("TIDEMARK_DEVICE asks for cuda and torch finds none; use auto or cpu")
    names = {"float64", "float32", "bfloat16", "float16"}
    if settings.dtype not in {"auto", *names}:
        raise UsageError(
            f"TIDEMARK_DTYPE={settings.dtype!r} is unknown; use auto, {', '.join(sorted(names))}"
        )
    name = settings.dtype
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return device, getattr(torch, name)


def folder_digest(folder: Path, patterns: tuple[str, ...] = ()) -> str:
    """Return 16 hex digits over names and contents of what decides a model's losses.

    Args:
        folder: of a model.
        patterns: names of files besides config.json; by default tokenizer and safetensors.
    """
    patterns = patterns or (*_TOKENIZER_FILES, *_WEIGHT_FILES)
    paths = {path for pattern in ("config.json", *patterns) for path in folder.glob(pattern)}
    digest = hashlib.sha256()
    try:
        for path in sorted(paths):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.name} {content}\n".encode())
    except OSError as error:
        raise ModelLoadError(f"{folder}: cannot be read ({error})") from error
    return digest.hexdigest()[:16]


def _download(location: str, revision: str | None, patterns: tuple[str, ...]) -> Path:
    if location.startswith(("/", ".", "~")) or location.count("/") > 1:
        raise ModelLoadError(f"{location}: no such folder; give a model's folder or a hub id")
    try:
        allowed = ["config.json", *patterns]
        return Path(snapshot_download(location, revision=revision, allow_patterns=allowed))
    except (OSError, ValueError) as error:
        at = f" at revision {revision}" if revision else ""
        raise ModelLoadError(
            f"{location}{at}: not a folder here, and the hub did not give it "
            f"({_first_line(error)}); check the name, the revision, the network, and for gated "
            "models `hf auth login`"
        ) from error


def _load_config(folder: Path, location: str) -> PreTrainedConfig:
    if (folder / "adapter_config.json").is_file():
        raise ModelLoadError(
            f"{location}: holds an adapter (adapter_config.json), which would be left out of the "
            "figures; merge it into the model and save that"
        )
    if not (folder / "config.json").is_file():
        raise ModelLoadError(
            f"{location}: has no config.json; expected a folder as save_pretrained writes it"
        )
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelLoadError(
            f"{location}: config.json is not one that transformers knows "
            f"({_first_line(error)}); models that bring their own code are not run"
        ) from error
    return config


def _refuse_non_causal(config: PreTrainedConfig, location: str) -> None:
    kind = config.model_type
    if config.is_encoder_decoder:
        raise NotMeasurable(
            f"{location}: {kind} is an encoder-decoder model, which gives no likelihood to plain "
            "text; only causal language models can be scored"
        )
    is_decoder = getattr(config, "is_decoder", False)
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not is_decoder:
        raise NotMeasurable(
            f"{location}: {kind} is a masked language model, which sees the tokens that it is to "
            "predict; only causal language models can be scored"
        )
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise NotMeasurable(f"{location}: {kind} is not a causal language model")


def _load_tokenizer(folder: Path, location: str) -> PreTrainedTokenizerFast:
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # the tokenizers library raises bare Exception on a broken file
        raise ModelLoadError(
            f"{location}: the tokenizer is missing or broken ({_first_line(error)}); expected "
            "tokenizer.json or files that transformers makes one from"
        ) from error
    if not tokenizer.is_fast:
        raise NotMeasurable(
            f"{location}: {type(tokenizer).__name__} has no fast version, which is needed to "
            "account for each token's text"
        )
    if not tokenizer.get_vocab():
        raise ModelLoadError(f"{location}: the tokenizer has no vocabulary; its files are missing")
    fast: PreTrainedTokenizerFast = tokenizer
    return fast


def _context(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerFast) -> int | None:
    text_config = config.get_text_config()
    for key in _CONTEXT_KEYS:
        value = getattr(text_config, key, None)
        if isinstance(value, int) and value > 0:
            return value
    limit = int(tokenizer.model_max_length)
    return limit if 0 < limit < _UNLIMITED else None


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()[:300]}" if lines else type(error).__name__
