"""Checkpoints: a model's folder, local or from the hub, verified before use.

All files come from one folder in the Hugging Face format; for an adapter, also from the folder of
its base model. No code in the files is run here. Weights must be safetensors unless the model is
trusted, and so runs in a confined process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from core.errors import ModelLoadError, NotMeasurable, UsageError
from core.settings import Settings
from models.weights.cache import open_snapshot
from models.weights.configuration import load_config
from models.weights.files import (
    ADAPTER_CONFIG,
    ADAPTER_FILES,
    EVERYTHING,
    PICKLED_ADAPTER,
    TOKENIZER_FILES,
    WEIGHT_FILES,
    adapter_part,
    first_line,
    folder_digest,
    linked_files,
)
from models.weights.hub import is_hub_id
from models.weights.products import suits_onednn
from models.weights.tokenizer_choice import TOKENIZER_FILE, ChosenTokenizer, choose_tokenizer
from models.weights.tokenizer_files import is_panic, refuse_costly_tokenizer, refuse_fatal_tokenizer

# Hide the warnings of transformers, because our own errors report all relevant problems.
transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]

_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_seq_length")
_MOST_IDS = 2**24  # tables of a token for each id stay small
_LEAST_WORDS = 2  # of a vocabulary; a tokenizer without files may have one, such as ▁
_UNLIMITED = 10**9  # tokenizers without a limit state a larger number


@dataclass(frozen=True)
class CheckpointFiles:
    """A model's files, checked; the weights are not read yet.

    Attributes:
        folder: local folder of the files; for an adapter, its base model's folder.
        revision: commit of the hub, or digest of the folder's files. For an adapter,
            ``<digest>+<own>+<base>``, where the digest covers the two revisions after it.
        context: maximum number of tokens of one input, or None without a maximum.
        is_trusted: True to run the model in a confined process; pickles are then allowed.
        has_own_code: True if the model's class is code in its folder.
        adapter: folder of an adapter to merge into the weights, or None without an adapter.
        replaced: class of transformers whose tokens are not those of the model's own file, which is
            used in its place; empty if both give the same tokens.
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
    is_trusted: bool = False
    has_own_code: bool = False
    adapter: Path | None = None
    replaced: str = ""

    @property
    def quantisation(self) -> str | None:
        """The method of quantisation in the configuration, or None without quantisation."""
        stated = getattr(self.config, "quantization_config", None)
        if stated is None:
            return None
        method = stated.get("quant_method") if isinstance(stated, dict) else stated.quant_method
        return str(getattr(method, "value", method))

    @property
    def numerics(self) -> str:
        """The facts besides the files that influence losses: rounding, the tokenizer's origin."""
        # The origin is stated only if earlier versions of tidemark read other tokens. ``signs``: a
        # special token is a single character, which earlier versions left out of texts.
        kernels = "onednn" if suits_onednn(self.device, self.dtype) else None
        origin = TOKENIZER_FILE if self.replaced else None
        named = self.tokenizer.all_special_tokens
        signs = "signs" if any(len(name) == 1 for name in named) else None
        facts = [str(self.dtype), self.attention, self.quantisation, kernels, origin, signs]
        return " ".join(filter(None, facts))


def open_checkpoint(
    location: str, revision: str | None, settings: Settings, is_trusted: bool = False
) -> CheckpointFiles:
    """Open a causal language model's files without reading its weights.

    The location is a folder or a hub id. The revision is a commit, tag or branch of the hub; for a
    folder, the required digest. Own code and pickles are refused unless the model is trusted.

    Raises:
        ModelLoadError: files are missing, unsafe or broken, or the hub refuses them.
        NotMeasurable: this is no causal language model, or its tokenizer is not a fast one.
        UsageError: the device or dtype of the settings is not available.
        DiskFull: there is no room for the files from the hub.
    """
    choose_device(settings)  # raises errors before any download
    # An adapter's revision has three parts: a digest, its own revision and its base model's.
    own_revision = revision
    base_revision = None
    is_whole = revision is not None and revision.count("+") == 2
    if revision is not None and is_whole:
        _, own_revision, base_revision = revision.split("+")
    folder, found_revision = open_folder(location, own_revision, settings, is_trusted)
    if (folder / ADAPTER_CONFIG).is_file():
        part = adapter_part(location)
        files: CheckpointFiles = part.open_adapter(
            folder, (location, found_revision), base_revision, settings, is_trusted
        )
        if (is_whole or is_trusted) and files.revision != revision:
            raise ModelLoadError(f"{location}: has revision {files.revision}, expected {revision}")
        return files
    return open_model(folder, (location, found_revision), folder, settings, is_trusted)


def open_folder(
    location: str, revision: str | None, settings: Settings, is_trusted: bool
) -> tuple[Path, str]:
    """Return a model's local folder and revision; fetch what is missing (``open_checkpoint``)."""
    folder = Path(location).expanduser()
    if not folder.is_dir():
        if not is_hub_id(location):
            raise ModelLoadError(f"{location}: no such folder; give a model's folder or a hub id")
        folder = open_snapshot(location, revision, settings, is_trusted)
        if is_trusted:
            linked_files(folder)
        return folder, folder.name  # the hub's cache names a snapshot by its commit
    patterns: tuple[str, ...] = (*TOKENIZER_FILES, *WEIGHT_FILES)
    if (folder / ADAPTER_CONFIG).is_file():
        patterns = (*TOKENIZER_FILES, *ADAPTER_FILES, PICKLED_ADAPTER)
    if is_trusted:
        linked_files(folder)
        patterns = EVERYTHING
    found = folder_digest(folder, patterns)
    if revision is not None and revision != found:
        raise ModelLoadError(
            f"{location}: the files have digest {found}, expected {revision}; "
            "they changed since the model was added, so add it again"
        )
    return folder, found


def open_model(
    folder: Path,
    identity: tuple[str, str],
    tokenizer_folder: Path,
    settings: Settings,
    is_trusted: bool,
) -> CheckpointFiles:
    """Read config and tokenizer of a model in a local folder, without its weights.

    ``identity`` is the location that the user gave, for messages, and the revision of the weights.

    Raises:
        ModelLoadError: config or tokenizer are missing or broken.
        NotMeasurable: the model is no causal language model, or its tokenizer is not a fast one.
        UsageError: the device or dtype of the settings is not available.
    """
    location, revision = identity
    device, dtype = choose_device(settings)
    config = load_config(folder, location, is_trusted)
    has_own_code = type(config) is PreTrainedConfig
    tokenizer, replaced = find_tokenizer(tokenizer_folder, location)
    return CheckpointFiles(
        location=location,
        folder=folder,
        revision=revision,
        config=config,
        tokenizer=tokenizer,
        context=context_of(config, tokenizer),
        device=device,
        dtype=dtype,
        attention="own code" if has_own_code else attention_of(config),
        is_trusted=is_trusted,
        has_own_code=has_own_code,
        replaced=replaced,
    )


def attention_of(config: PreTrainedConfig) -> str:
    """Return the name of the attention implementation, for a hash without loaded weights."""
    model_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return "sdpa" if getattr(model_class, "_supports_sdpa", False) else "eager"


def choose_device(settings: Settings) -> tuple[torch.device, torch.dtype]:
    """Return device and dtype of the settings; raise UsageError if one is not available."""
    has_cuda = torch.cuda.is_available()
    best = "cuda" if has_cuda else "cpu"
    try:
        device = torch.device(best if settings.device == "auto" else settings.device)
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


def find_tokenizer(folder: Path, location: str) -> ChosenTokenizer:
    """Load a folder's tokenizer; if it brings code, read tokenizer.json and do not run the code.

    Where transformers gives other tokens than tokenizer.json, the file is used.

    Raise ModelLoadError if the tokenizer is missing or broken. Raise NotMeasurable for a slow
    tokenizer, which does not report each token's text.
    """
    if not any(path for pattern in TOKENIZER_FILES for path in folder.glob(pattern)):
        raise ModelLoadError(
            f"{location}: the tokenizer is missing: none of its files is there; copy "
            "tokenizer.json and tokenizer_config.json of the model to the weights"
        )
    refuse_fatal_tokenizer(folder, location)
    path = folder / "tokenizer.json"
    if path.is_file():
        refuse_costly_tokenizer(path.read_bytes(), location)
    with _explained(location):
        tokenizer: Any = _read_tokenizer(folder)
    if not tokenizer.is_fast:
        raise NotMeasurable(
            f"{location}: {type(tokenizer).__name__} has no fast version, which is needed to "
            "account for each token's text"
        )
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if not 0 <= largest < _MOST_IDS:
        raise ModelLoadError(
            f"{location}: the tokenizer has no vocabulary, or token ids up to {largest:,}; "
            f"expected ids below {_MOST_IDS:,}, so its files are missing or broken"
        )
    if len(tokenizer.get_vocab().keys() - set(tokenizer.all_special_tokens)) < _LEAST_WORDS:
        # Without any file, transformers makes one of nothing but special tokens.
        raise ModelLoadError(
            f"{location}: the tokenizer is missing: there are special tokens alone; copy "
            "tokenizer.json and tokenizer_config.json of the model to the weights"
        )
    if not path.is_file():  # transformers made the tokenizer from other files
        refuse_costly_tokenizer(tokenizer.backend_tokenizer.to_str(), location)
    with _explained(location):
        return choose_tokenizer(tokenizer, folder, location)


@contextlib.contextmanager
def _explained(location: str) -> Iterator[None]:
    """Convert errors of the tokenizers library, which raises bare Exception on a broken file."""
    try:
        yield
    except ModelLoadError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise ModelLoadError(
            f"{location}: the tokenizer is missing or broken ({first_line(error)}); expected "
            "tokenizer.json or files that transformers makes one from"
        ) from error


def _read_tokenizer(folder: Path) -> Any:
    """Load a tokenizer by transformers; from tokenizer.json if its class is code in the folder."""
    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except ValueError:  # also raised for code that is not run
        if not (folder / "tokenizer.json").is_file():
            raise
        return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)


def context_of(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerFast) -> int | None:
    """Return the longest input that config or tokenizer state, in tokens, or None."""
    text_config = config.get_text_config()
    for key in _CONTEXT_KEYS:
        value = getattr(text_config, key, None)
        if isinstance(value, int) and value > 0:
            return value
    limit = int(tokenizer.model_max_length)
    return limit if 0 < limit < _UNLIMITED else None
