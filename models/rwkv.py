"""RWKV checkpoints (``.pth``), versions 4 to 7, run by the rwkv package.

A checkpoint is a pickle of named tensors. Every file is first read with torch's restricted
unpickler. A file with other content, such as code, raises an error before the package opens it.
"""

from __future__ import annotations

import hashlib
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

from core.errors import ModelLoadError, UsageError
from core.settings import Settings
from models.backends import Backend
from models.catalogue import ModelEntry
from models.generation.local import GenerationIdentity, LocalGenerator
from models.options.answering import load_answerer
from models.rwkv_engine import DEFECTS, STRATEGY_DTYPES, RwkvEngine, RwkvFiles
from models.rwkv_tokenizer import open_tokenizer, package_folder
from models.scoring.machine import describe_device, library_versions, name_of_dtype
from models.scoring.scorer import ScorerFacts
from models.scoring.token_scorer import TokenIdentity, TokenScorer
from models.weights.checkpoint import choose_device

_BATCH_TOKENS = 2048  # default tokens of a batch, whose rows are run one by one


def identify_rwkv(entry: ModelEntry, settings: Settings) -> TokenIdentity:
    """Return the identity of a checkpoint; errors are those of ``open_rwkv``."""
    return _identity(entry, open_rwkv(entry, settings))


def load_rwkv(entry: ModelEntry, settings: Settings) -> TokenScorer:
    """Load a checkpoint; errors are those of ``open_rwkv`` and ``RwkvEngine``."""
    files = open_rwkv(entry, settings)
    text_model = files.tokenizer.text_model
    facts = ScorerFacts(
        device=describe_device(files.device),
        dtype=name_of_dtype(files.dtype),
        batch_tokens=settings.batch_tokens or _BATCH_TOKENS,
        versions=library_versions("torch", "rwkv", "tokenizers"),
        tokenizer=text_model.facts,
    )
    return TokenScorer(_identity(entry, files), text_model, RwkvEngine(files), facts)


def identify_rwkv_texts(entry: ModelEntry, settings: Settings) -> GenerationIdentity:
    """Return the facts that determine a checkpoint's texts; errors are those of ``open_rwkv``."""
    return _texts_identity(entry, open_rwkv(entry, settings))


def load_rwkv_generator(entry: ModelEntry, settings: Settings) -> LocalGenerator:
    """Load a checkpoint to continue plain prompts; errors are those of ``load_rwkv``."""
    files = open_rwkv(entry, settings)
    return LocalGenerator(
        identity=_texts_identity(entry, files),
        text_model=files.tokenizer.text_model,
        decode=files.tokenizer.decode,
        rows=RwkvEngine(files),
        budget=settings.batch_tokens or _BATCH_TOKENS,
        most_rows=1,
    )


def _texts_identity(entry: ModelEntry, files: RwkvFiles) -> GenerationIdentity:
    identity, end = _identity(entry, files), files.tokenizer.text_model.eos_token
    return GenerationIdentity(
        name=identity.name,
        revision=identity.revision,
        context=identity.context,
        ends=() if end is None else (end,),
        is_chat=False,
        definition=f"plain {identity.numerics}",
    )


def _identity(entry: ModelEntry, files: RwkvFiles) -> TokenIdentity:
    # A recurrent model has no maximum length. Only the catalogue may limit the context.
    return TokenIdentity(entry.name, files.revision, entry.context, f"{files.dtype} rwkv")


def open_rwkv(entry: ModelEntry, settings: Settings) -> RwkvFiles:
    """Open a ``.pth`` file, or the only such file of a folder, without loading the model.

    Raises:
        ModelLoadError: the file is missing, unsafe or broken, no tokenizer fits, or the rwkv
            package is not installed.
        UsageError: the device or dtype of the settings is not available.
    """
    package_folder()
    location = entry.location
    device, dtype = choose_device(settings)
    if dtype not in STRATEGY_DTYPES:
        raise UsageError(
            f"{location}: the rwkv package does not compute in {dtype}; set TIDEMARK_DTYPE to "
            "auto, float32, bfloat16 or float16"
        )
    path = find_checkpoint(location)
    shapes = _read_shapes(path)
    num_rows = shapes["emb.weight"][0]
    tokenizer = open_tokenizer(path, num_rows)
    found = _digest(path, tokenizer.path)
    if entry.revision not in (None, found):
        raise ModelLoadError(
            f"{location}: weights and tokenizer have digest {found}, expected {entry.revision}; "
            "they changed since the model was added, so add it again"
        )
    is_v7 = "blocks.0.att.r_k" in shapes
    return RwkvFiles(path, found, num_rows, is_v7, tokenizer, device, dtype)


def find_checkpoint(location: str) -> Path:
    """Return the ``.pth`` file at a location; raise ModelLoadError if there is none or several."""
    path = Path(location).expanduser()
    found = sorted(path.glob("*.pth")) if path.is_dir() else [path]
    if len(found) != 1:
        raise ModelLoadError(
            f"{location}: expected one .pth file in the folder, found {len(found)}; give the "
            "file's own path"
        )
    if found[0].suffix != ".pth" or not found[0].is_file():
        raise ModelLoadError(f"{location}: no such .pth file, nor a folder with one")
    return found[0]


def _read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a checkpoint's tensors; raise ModelLoadError for other content."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unsupported content raises an error below
            tensors: Any = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
    except DEFECTS as error:
        foreign = re.search(r"GLOBAL ([\w.]+)", str(error))
        why = f"it names {foreign[1]}" if foreign else f"{type(error).__name__}, perhaps cut off"
        raise ModelLoadError(
            f"{path}: not a file of tensors and nothing else ({why}); a pickle with code in it is "
            "never loaded"
        ) from error
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in tensors.items()
    ):
        raise ModelLoadError(
            f"{path}: expected tensors by name; if the rwkv package has converted the file for a "
            "strategy, use the released file instead"
        )
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    if len(shapes.get("emb.weight", ())) != 2 or "blocks.0.ln1.weight" not in shapes:
        raise ModelLoadError(
            f"{path}: has no emb.weight and blocks.0; expected an RWKV checkpoint of version 4 to 7"
        )
    return shapes


def _digest(*paths: Path) -> str:
    """Return 16 hex digits over the contents of files."""
    digest = hashlib.sha256()
    try:
        for path in paths:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise ModelLoadError(f"{path}: cannot be read ({error})") from error
    return digest.hexdigest()[:16]


BACKEND = Backend(
    kind="rwkv",
    on_device=True,
    is_listed=True,
    identify=identify_rwkv,
    load=load_rwkv,
    load_answerer=load_answerer,
    load_generator=load_rwkv_generator,
    identify_texts=identify_rwkv_texts,
)
