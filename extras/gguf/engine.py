"""GGUF files, read by transformers' own reader and run as a Hugging Face model in full precision.

The header is checked first (``header.py``). A file is opened through a link in a folder of its own,
because transformers also reads files that lie beside it. Quantised weights are unpacked at loading,
so the losses are those of a folder with the unpacked weights.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
)
from transformers.utils import logging as transformers_logging

from core.errors import ModelLoadError, NotMeasurable
from core.settings import Settings
from core.version import how_to_install
from extras.gguf.header import GgufHeader, read_gguf_header
from models.catalogue import ModelEntry
from models.scoring.token_scorer import CausalLM, CausalLMIdentity, identity_of
from models.weights.checkpoint import CheckpointFiles, open_model
from models.weights.configuration import refuse_non_causal
from models.weights.files import MODEL_FAILURES, Weights, first_line, refuse_endless
from models.weights.loading import (
    embedding_rows,
    place,
    plan_placement,
    require_complete,
    require_plausible,
    require_rows,
)
from models.weights.tokenizer_choice import require_stable
from models.weights.tokenizer_files import is_panic, refuse_costly_tokenizer

_FILE = "model.gguf"
_TOKENS = "tokenizer.ggml.tokens"


def identify_gguf(entry: ModelEntry, settings: Settings) -> CausalLMIdentity:
    """Return the identity of a file; errors are those of ``open_gguf``."""
    return identity_of(open_gguf(entry, settings), entry.name, settings)


def load_gguf(entry: ModelEntry, settings: Settings) -> CausalLM:
    """Load the model of a file; errors are those of ``open_gguf`` and ``unpack_model``."""
    return CausalLM.assemble(identify_gguf(entry, settings), settings, unpack_model)


def open_gguf(entry: ModelEntry, settings: Settings) -> CheckpointFiles:
    """Open a file, or the only such file of a folder, without reading its weights.

    Raises:
        ModelLoadError: the file is missing, damaged, changed or of a kind that transformers does
            not read, or the package gguf is not installed.
        NotMeasurable: the model is no causal language model, or its tokenizer is not a fast one.
        UsageError: the device or dtype of the settings is not available.
    """
    path = find_file(entry.location)
    location = entry.location
    header = read_gguf_header(path)
    _require_readable(header, location)
    refuse_endless(path, path.parent)
    revision = _digest(path)
    if entry.revision not in (None, revision):
        raise ModelLoadError(
            f"{location}: the file has digest {revision}, expected {entry.revision}; it changed "
            "since the model was added, so add it again"
        )
    folder = _described(path, header, revision, settings)
    return open_model(folder, (location, revision), folder, settings, is_trusted=False)


def find_file(location: str) -> Path:
    """Return the ``.gguf`` file at a location; raise ModelLoadError if there is none or several."""
    path = Path(location).expanduser()
    found = sorted(path.glob("*.gguf")) if path.is_dir() else [path]
    if len(found) != 1:
        raise ModelLoadError(
            f"{location}: expected one .gguf file in the folder, found {len(found)}; give the "
            "file's own path (weights in several files are not read: merge them into one)"
        )
    if found[0].suffix != ".gguf" or not found[0].is_file():
        raise ModelLoadError(f"{location}: no such .gguf file, nor a folder with one")
    return found[0].resolve()


def unpack_model(files: CheckpointFiles) -> PreTrainedModel:
    """Read the weights of a file in full precision, and compare them with config and tokenizer.

    Raise ModelLoadError if tensors are missing, not used, or of another shape.
    """
    path = find_file(files.location)
    header = read_gguf_header(path)
    placement = plan_placement(files.device, files.dtype, _weights(header), is_quantised=False)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    with _explained(files.location, "the weights cannot be loaded"), _alone(path) as folder:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            gguf_file=_FILE,
            config=files.config,
            quantization_config=GgufConfig(dequantize=True),
            dtype=files.dtype,
            attn_implementation=files.attention,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # ``require_complete`` raises an error for them
        )
    model: PreTrainedModel = loaded[0]
    with _said_of_the_file():
        require_complete(loaded[1], files.location)
    _require_all_used(model, header, loaded[1]["unexpected_keys"], files.location)
    model = place(model, files.device, placement)
    require_rows(files, embedding_rows(model))
    model.eval()  # type: ignore[no-untyped-call]
    return model


def _require_readable(header: GgufHeader, location: str) -> None:
    """Raise ModelLoadError for what transformers does not read, or reads and ignores."""
    try:
        import gguf  # noqa: F401 - transformers reads most architectures with this package
    except ImportError as error:
        raise ModelLoadError(
            f"{location}: GGUF files need the extra gguf: {how_to_install('gguf')}"
        ) from error
    from transformers.integrations.gguf.gguf_conversion_mapping import GGUF_ARCHS
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    found = header.architecture
    # "general" and "tokenizer" are tables of keys; four names are spelled otherwise in files.
    spelled = {name.replace("qwen2_moe", "qwen2moe").replace("qwen3_moe", "qwen3moe")
               .replace("gpt_oss", "gpt-oss").replace("minimax_m2", "minimax-m2")
               for name in GGUF_SUPPORTED_ARCHITECTURES}  # fmt: skip
    known = (spelled | set(GGUF_ARCHS)) - {"general", "tokenizer"}
    if found not in known:
        raise ModelLoadError(
            f"{location}: the architecture {found!r} is not one that transformers reads from GGUF "
            f"files ({', '.join(sorted(known))}); use the model's folder"
        )
    _require_plain_positions(header, location)
    _require_vocabulary(header, location)
    parts = header.metadata.get("split.count", 1)
    if parts not in (0, 1):
        raise ModelLoadError(
            f"{location}: this is one of {parts} parts of a model; merge them into one file "
            "(gguf-split --merge of llama.cpp)"
        )
    if header.metadata.get(f"{found}.attention.causal") is False:
        raise NotMeasurable(
            f"{location}: its attention is not causal, so the model does not predict the next token"
        )


def _require_plain_positions(header: GgufHeader, location: str) -> None:
    """Raise ModelLoadError for scaled positions, and for numbers that no model has."""
    found = header.architecture
    scaling = header.metadata.get(f"{found}.rope.scaling.type")
    if found != "gpt-oss":
        # llama.cpp takes a factor without a type for a linear one.
        factors = [f"{found}.rope.scaling.factor", f"{found}.rope.scale_linear"]
        stated = [name for name in factors if header.metadata.get(name, 1) not in (0, 1)]
        if scaling not in (None, "none") or (scaling is None and stated):
            key = stated[0] if scaling is None else f"{found}.rope.scaling.type"
            raise ModelLoadError(
                f"{location}: positions are scaled ({key} = {header.metadata[key]}), which "
                "transformers does not read from GGUF files; use the model's folder"
            )
    for key, value in header.metadata.items():
        if not isinstance(value, float):
            continue
        is_wrong = not math.isfinite(value) or (key.endswith("_epsilon") and value < 0)
        if is_wrong or (key.endswith("rope.freq_base") and value <= 0):
            raise ModelLoadError(
                f"{location}: the header states {key} = {value}, which no model has; get the file "
                "again"
            )


def _require_vocabulary(header: GgufHeader, location: str) -> None:
    """Raise ModelLoadError unless each token has its score and type, if there are any."""
    tokens = header.metadata.get(_TOKENS)
    if not isinstance(tokens, tuple) or not tokens:
        raise ModelLoadError(
            f"{location}: the file has no vocabulary ({_TOKENS}); make it again with the tokenizer"
        )
    for name in ("scores", "token_type"):
        key = f"tokenizer.ggml.{name}"
        values = header.metadata.get(key)
        if isinstance(values, tuple) and len(values) != len(tokens):
            raise ModelLoadError(
                f"{location}: {key} has {len(values):,} entries for {len(tokens):,} tokens; make "
                "the file again"
            )


def _digest(path: Path) -> str:
    """Return the first 16 hexadecimal digits of a file's SHA-256."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise ModelLoadError(f"{path}: cannot be read ({error})") from error


def _described(path: Path, header: GgufHeader, revision: str, settings: Settings) -> Path:
    """Return a folder with config and tokenizer of a file, as ``save_pretrained`` writes them.

    transformers takes a minute for a vocabulary of 262,144 tokens, so the folder is kept among the
    scratch files. Its name has the digest of the file and the versions of the readers.
    """
    versions = [importlib.metadata.version(name) for name in ("transformers", "gguf")]
    folder = settings.scratch / "gguf" / "-".join([revision, *versions])
    if folder.is_dir():
        return folder
    location = str(path)
    with _explained(location, "transformers makes no config of the header"), _alone(path) as at:
        config = AutoConfig.from_pretrained(at, gguf_file=_FILE, local_files_only=True)
    refuse_non_causal(config, location)
    with _said_of_the_file():
        require_plausible(config, _weights(header), location, is_quantised=False)
    with _explained(location, "transformers makes no tokenizer of the header"), _alone(path) as at:
        tokenizer: Any = AutoTokenizer.from_pretrained(at, gguf_file=_FILE, local_files_only=True)
        refuse_costly_tokenizer(tokenizer.backend_tokenizer.to_str(), location)
        require_stable(tokenizer, location)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(mkdtemp(dir=folder.parent))
    config.save_pretrained(made)
    tokenizer.save_pretrained(made)
    try:
        made.rename(folder)
    except OSError:  # another process has made the folder meanwhile
        shutil.rmtree(made)
    return folder


def _weights(header: GgufHeader) -> Weights:
    """Return the sums over the tensors in a header."""
    return Weights(
        num_tensors=len(header.tensors),
        num_elements=sum(each.num_elements for each in header.tensors),
        num_bytes=sum(each.num_bytes for each in header.tensors),
    )


def _require_all_used(
    model: PreTrainedModel, header: GgufHeader, unexpected: list[str], location: str
) -> None:
    """Raise ModelLoadError if transformers uses no part of the model for one of the tensors.

    Its reader passes over such a tensor without a word. One is ``rope_freqs.weight``, which scales
    the positions of Llama 3.
    """
    from transformers.integrations.gguf.gguf_conversion_mapping import GGUF_ARCHS
    from transformers.modeling_gguf_pytorch_utils import (
        TENSOR_PROCESSORS,
        TensorProcessor,
        get_gguf_hf_weights_map,
    )

    unused = set(unexpected)
    if header.architecture not in GGUF_ARCHS:
        processor: Any = TENSOR_PROCESSORS.get(header.architecture, TensorProcessor)
        made = processor(config=model.config.to_dict())
        used = {*get_gguf_hf_weights_map(model, made), "output.weight"}
        unused = {each.name for each in header.tensors} - used
    if unused:
        raise ModelLoadError(
            f"{location}: transformers has no place for {len(unused)} tensors of the file, the "
            f"first is {min(unused)}; the model would be scored without them, so use its folder"
        )


@contextmanager
def _alone(path: Path) -> Iterator[str]:
    """Yield a folder in which a link to the file is the only entry."""
    with TemporaryDirectory(prefix="tidemark-gguf-") as folder:
        Path(folder, _FILE).symlink_to(path)
        yield folder


@contextmanager
def _explained(location: str, what: str) -> Iterator[None]:
    """Convert errors of transformers and tokenizers to ModelLoadError."""
    try:
        yield
    except ModelLoadError:
        raise
    except BaseException as error:
        # The tokenizers library raises bare Exception, and panics.
        is_known = isinstance(error, MODEL_FAILURES) or type(error) is Exception
        if not is_known and not is_panic(error):
            raise
        raise ModelLoadError(f"{location}: {what} ({first_line(error)})") from error


@contextmanager
def _said_of_the_file() -> Iterator[None]:
    """Name the header in errors about config.json, which a file has not."""
    try:
        yield
    except ModelLoadError as error:
        raise ModelLoadError(str(error).replace("config.json", "the header")) from error
