"""Checkpoints: a model's folder, from this machine or the hub, checked before it is believed.

Everything comes from one folder of ordinary Hugging Face files, or two: an adapter's and that of
the model which it was made for. No code from them is ever run, and weights are safetensors unless
the settings allow pickles.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
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
from transformers.utils.quantization_config import QuantizationMethod

from core.errors import ModelLoadError, NotMeasurable, UsageError
from core.settings import Settings
from models.adapters import merge_adapter, read_base, require_safe_adapter
from models.failures import MODEL_FAILURES, first_line
from models.hub import is_hub_id
from models.model_cache import open_snapshot
from models.model_files import (
    ADAPTER_CONFIG,
    ADAPTER_FILES,
    PICKLE_FILES,
    PICKLED_ADAPTER,
    TOKENIZER_FILES,
    WEIGHT_FILES,
    examine_weights,
    folder_digest,
    refuse_fatal_tokenizer,
)
from models.placement import place, plan_placement
from models.plausibility import require_complete, require_plausible

# Its remarks are not for our users: what matters is in our own errors.
transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]

# The names by which configurations state the longest sequence.
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_seq_length")
_UNLIMITED = 10**9  # tokenizers without a limit state a huge one


@dataclass(frozen=True)
class CheckpointFiles:
    """A model's files, opened and checked, its weights not yet read.

    Attributes:
        location: the folder or hub id that was asked for.
        folder: where the files are on this machine; for an adapter, those of its base.
        revision: commit of the hub, or digest of the folder's files; for an adapter, a digest over
            its own revision and its base's, and both of them: ``<digest>+<own>+<base>``.
        config: of a causal language model.
        tokenizer: a fast one.
        context: most tokens the model takes at once; None where it has no maximum.
        device: where the model will run.
        dtype: of its weights then.
        attention: the implementation of attention that it will use.
        allow_pickle: whether weights may be other than safetensors.
        adapter: the folder of an adapter that is to be merged into the weights.
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
    adapter: Path | None = None

    @property
    def quantisation(self) -> str | None:
        """How the checkpoint's weights are quantised, as its makers name the method."""
        stated = getattr(self.config, "quantization_config", None)
        if stated is None:
            return None
        method = stated.get("quant_method") if isinstance(stated, dict) else stated.quant_method
        return str(getattr(method, "value", method))

    @property
    def numerics(self) -> str:
        """What decides the rounding of losses, beside the weights: part of a cell's identity."""
        return " ".join(filter(None, [str(self.dtype), self.attention, self.quantisation]))


def open_checkpoint(location: str, revision: str | None, settings: Settings) -> CheckpointFiles:
    """Open a causal language model's files, without its weights.

    Args:
        location: a folder, or a hub id such as ``EleutherAI/pythia-160m``.
        revision: a commit, tag or branch of the hub; for a folder, the digest it must have.
        settings: device, dtype, allow_pickle_weights, sites, model_cache_bytes.

    Raises:
        ModelLoadError: files are missing, unsafe or broken, or the hub does not give them.
        NotMeasurable: this is no causal language model, or its tokenizer is not a fast one.
        UsageError: the device or dtype of the settings cannot be had.
        DiskFull: there is no room for what the hub would give.
    """
    choose_device(settings)  # before anything is fetched
    # An adapter that was opened before is asked for by the revision that it had then.
    given = revision.split("+") if revision else []
    own, base = given[1:] if len(given) == 3 else (revision, None)
    folder, found = _open_folder(location, own, settings)
    if (folder / ADAPTER_CONFIG).is_file():
        files = _open_adapter(folder, (location, found), base, settings)
        if len(given) == 3 and files.revision != revision:
            raise ModelLoadError(f"{location}: has revision {files.revision}, expected {revision}")
        return files
    return _open_model(folder, (location, found), folder, settings)


def _open_adapter(
    folder: Path, identity: tuple[str, str], revision: str | None, settings: Settings
) -> CheckpointFiles:
    """Open an adapter and the model that it was made for.

    Args:
        folder: of the adapter.
        identity: its location and its own revision.
        revision: that its base must have; None leaves that to the adapter.
        settings: as for ``open_checkpoint``.

    Raises: as ``open_checkpoint``.
    """
    location, own = identity
    require_safe_adapter(folder, location, settings.allow_pickle_weights)
    base, base_revision = read_base(folder, location)
    made_for = f"{location}: is an adapter of {base}"
    try:
        base_folder, found = _open_folder(base, revision or base_revision, settings)
    except ModelLoadError as error:
        raise ModelLoadError(f"{made_for}, which cannot be had: {error}") from error
    if (base_folder / ADAPTER_CONFIG).is_file():
        raise ModelLoadError(
            f"{made_for}, which is an adapter itself; merge that one into its model and save it"
        )
    both = f"{own}+{found}"
    digest = hashlib.sha256(both.encode()).hexdigest()[:12]
    has_tokenizer = any(any(folder.glob(name)) for name in ("tokenizer.json", "vocab*", "*.model"))
    files = _open_model(
        base_folder,
        (location, f"{digest}+{both}"),
        folder if has_tokenizer else base_folder,
        settings,
    )
    if files.quantisation is not None:
        raise ModelLoadError(
            f"{made_for}, whose weights are quantised ({files.quantisation}); merging would change "
            "them, so name the model before quantisation in base_model_name_or_path"
        )
    return replace(files, adapter=folder)


def _open_folder(location: str, revision: str | None, settings: Settings) -> tuple[Path, str]:
    """Return a model's folder on this machine, and its revision.

    Raises: as ``open_checkpoint``.
    """
    folder = Path(location).expanduser()
    if not folder.is_dir():
        if not is_hub_id(location):
            raise ModelLoadError(f"{location}: no such folder; give a model's folder or a hub id")
        folder = open_snapshot(location, revision, settings)
        return folder, folder.name  # the hub's cache names a snapshot by its commit
    patterns: tuple[str, ...] = (*TOKENIZER_FILES, *WEIGHT_FILES)
    if (folder / ADAPTER_CONFIG).is_file():
        patterns = (*TOKENIZER_FILES, *ADAPTER_FILES, PICKLED_ADAPTER)
    elif settings.allow_pickle_weights:
        patterns += PICKLE_FILES
    found = folder_digest(folder, patterns)
    if revision is not None and revision != found:
        raise ModelLoadError(
            f"{location}: the files have digest {found}, expected {revision}; "
            "they changed since the model was added, so add it again"
        )
    return folder, found


def _open_model(
    folder: Path, identity: tuple[str, str], tokenizer_folder: Path, settings: Settings
) -> CheckpointFiles:
    location, revision = identity
    device, dtype = choose_device(settings)
    config = _load_config(folder, location)
    _refuse_non_causal(config, location)
    tokenizer = load_tokenizer(tokenizer_folder, location)
    return CheckpointFiles(
        location=location,
        folder=folder,
        revision=revision,
        config=config,
        tokenizer=tokenizer,
        context=_context(config, tokenizer),
        device=device,
        dtype=dtype,
        attention=_attention(config),
        allow_pickle=settings.allow_pickle_weights,
    )


def load_weights(files: CheckpointFiles) -> PreTrainedModel:
    """Load the weights: a model in evaluation mode, on its device or devices, in its dtype.

    An adapter is merged into them.

    Raises:
        ModelLoadError: weights are missing, unsafe, broken or do not fit config or tokenizer.
        NotMeasurable: the adapter is of a kind that cannot be merged.
    """
    is_quantised = files.quantisation is not None
    if is_quantised and files.quantisation not in {method.value for method in QuantizationMethod}:
        raise ModelLoadError(
            f"{files.location}: the weights are quantised by {files.quantisation!r}, which "
            "transformers does not know; use the model before quantisation"
        )
    weights = examine_weights(files.folder, files.location, files.allow_pickle)
    require_plausible(files.config, weights, files.location, is_quantised)
    placement = plan_placement(files.device, files.dtype, weights, is_quantised)
    # An adapter is merged in the host's memory, and the model moved then.
    model = _read_weights(files, None if files.adapter else placement)
    if files.adapter is not None:
        model = merge_adapter(model, files.adapter, files.location)
    rows = embedding_rows(model)
    if (largest := max(files.tokenizer.get_vocab().values(), default=-1)) >= rows:
        raise ModelLoadError(
            f"{files.location}: the tokenizer has token ids up to {largest} and the embedding "
            f"{rows} rows; tokenizer and weights are not of the same model"
        )
    model = place(model, files.device, placement)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def _read_weights(files: CheckpointFiles, placement: str | None) -> PreTrainedModel:
    """Read the weights as they are, to where ``models.placement`` wants them.

    Raises:
        ModelLoadError: they are broken, do not fit the config, or need a library that is not here.
    """
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
            ignore_mismatched_sizes=True,  # they are refused below, by name
            **({"device_map": placement} if placement else {}),
        )
    except MODEL_FAILURES as error:
        stored = f" ({files.quantisation} weights)" if files.quantisation else ""
        raise ModelLoadError(
            f"{files.location}: the weights cannot be loaded{stored}: {first_line(error)}"
        ) from error
    model: PreTrainedModel = loaded[0]
    require_complete(loaded[1], files.location)
    return model


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


def _load_config(folder: Path, location: str) -> PreTrainedConfig:
    if not (folder / "config.json").is_file():
        raise ModelLoadError(
            f"{location}: has no config.json; expected a folder as save_pretrained writes it"
        )
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        text_config = config.get_text_config()
        if hasattr(text_config, "output_router_logits"):
            text_config.output_router_logits = False  # would be put before the logits
        text_config.to_dict()  # a config within the config is one, too
    except MODEL_FAILURES as error:
        raise ModelLoadError(
            f"{location}: config.json is not one that transformers knows "
            f"({first_line(error)}); models that bring their own code are not run"
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


def load_tokenizer(folder: Path, location: str) -> PreTrainedTokenizerFast:
    """Load a folder's tokenizer.

    Args:
        folder: of a model, or of a tokenizer alone.
        location: for messages.

    Raises:
        ModelLoadError: it is missing or broken.
        NotMeasurable: it is not a fast one, which tells each token's text.
    """
    refuse_fatal_tokenizer(folder, location)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # the tokenizers library raises bare Exception on a broken file
        raise ModelLoadError(
            f"{location}: the tokenizer is missing or broken ({first_line(error)}); expected "
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
