"""RWKV checkpoints (``.pth``), versions 4 to 7, run by the rwkv package.

A checkpoint is a pickle of tensors by name. It is read with torch's restricted unpickler before the
package sees it: one that holds anything but tensors, code above all, is refused.

The package is imported anew for each model, because a module of it serves one version, dtype and
device at a time, and without TorchScript, whose optimiser may change figures from run to run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import struct
import threading
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

from core.errors import ModelLoadError, UsageError
from core.settings import Settings, set_rwkv_environment
from models.backend import DeviceFull, Losses, Tokens
from models.catalogue import ModelEntry
from models.checkpoint import choose_device
from models.cross_entropy import cross_entropy
from models.machine import describe_device, library_versions
from models.placement import is_memory_full
from models.rwkv_tokenizer import RwkvTokenizer, open_tokenizer, package_folder
from models.tally import ScorerFacts
from models.token_scorer import TokenIdentity, TokenScorer

# Tokens run at one time: enough for the matrix products, while a World model's float32 logits take
# 67 MB and version 5's square of the length stays small.
_SLICE_TOKENS = 256
_BATCH_TOKENS = 2048  # rows are run one by one: what is gathered for a batch is only what waits
_STRATEGY_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_DEFECTS = (
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    OSError,
    EOFError,
    UnpicklingError,
    struct.error,
)
_import_lock = threading.Lock()


@dataclass(frozen=True)
class RwkvFiles:
    """A checkpoint, opened and checked, its weights not yet on a device.

    Attributes:
        path: of the weights.
        revision: digest of weights and tokenizer.
        is_v7: whether it is of version 7, which the package keeps apart.
        tokenizer: that fits the embedding.
        device: where the model will run.
        dtype: of its weights then.
    """

    path: Path
    revision: str
    is_v7: bool
    tokenizer: RwkvTokenizer
    device: torch.device
    dtype: torch.dtype


def identify_rwkv(entry: ModelEntry, settings: Settings) -> TokenIdentity:
    """Return what a checkpoint's cells are named after; errors as those of ``open_rwkv``."""
    return _identity(entry, open_rwkv(entry, settings))


def load_rwkv(entry: ModelEntry, settings: Settings) -> TokenScorer:
    """Load a checkpoint; errors as those of ``open_rwkv`` and ``RwkvBackend``."""
    files = open_rwkv(entry, settings)
    text_model = files.tokenizer.text_model
    facts = ScorerFacts(
        device=describe_device(files.device),
        dtype=str(files.dtype).removeprefix("torch."),
        batch_tokens=settings.batch_tokens or _BATCH_TOKENS,
        versions=library_versions("torch", "rwkv", "tokenizers"),
        tokenizer=text_model.facts,
    )
    return TokenScorer(_identity(entry, files), text_model, RwkvBackend(files), facts)


def _identity(entry: ModelEntry, files: RwkvFiles) -> TokenIdentity:
    # The state has no maximum, so windows may have any length that the catalogue does not forbid.
    return TokenIdentity(entry.name, files.revision, entry.context, f"{files.dtype} rwkv")


def open_rwkv(entry: ModelEntry, settings: Settings) -> RwkvFiles:
    """Open a checkpoint, without putting its weights anywhere.

    Args:
        entry: its location is a ``.pth`` file, or a folder with exactly one; its revision None, or
            the digest that the files must have.
        settings: device, dtype.

    Raises:
        ModelLoadError: the file is missing, unsafe or broken, no tokenizer fits, or the rwkv
            package is not installed.
        UsageError: the device or dtype of the settings cannot be had.
    """
    package_folder()
    location = entry.location
    device, dtype = choose_device(settings)
    if dtype not in _STRATEGY_DTYPES:
        raise UsageError(
            f"{location}: the rwkv package does not compute in {dtype}; set TIDEMARK_DTYPE to "
            "auto, float32, bfloat16 or float16"
        )
    path = find_checkpoint(location)
    shapes = _read_shapes(path)
    tokenizer = open_tokenizer(path, shapes["emb.weight"][0])
    found = _digest(path, tokenizer.path)
    if entry.revision not in (None, found):
        raise ModelLoadError(
            f"{location}: weights and tokenizer have digest {found}, expected {entry.revision}; "
            "they changed since the model was added, so add it again"
        )
    is_v7 = "blocks.0.att.r_k" in shapes
    return RwkvFiles(path, found, is_v7, tokenizer, device, dtype)


def find_checkpoint(location: str) -> Path:
    """Return the ``.pth`` file of a location.

    Raises:
        ModelLoadError: there is none, or a folder has several.
    """
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


class RwkvBackend:
    """Runs an RWKV model, one row at a time, from an empty state each.

    Args:
        files: of the model.

    Raises:
        ModelLoadError: the weights are not those of a model that the package runs.
    """

    def __init__(self, files: RwkvFiles) -> None:
        strategy = f"{files.device} {_STRATEGY_DTYPES[files.dtype]}"
        # The package adds the suffix to the names of version 7 by itself.
        name = str(files.path.with_suffix("") if files.is_v7 else files.path)
        self._device = files.device
        try:
            with _import_lock:
                module = _import_package(files.is_v7)
                self._model: Any = module.RWKV(name, strategy)  # reads the environment, too
            self._losses(np.arange(3), np.arange(2))
        except _DEFECTS as error:
            if isinstance(error, RuntimeError) and is_memory_full(error):
                raise ModelLoadError(
                    f"{files.path}: the weights do not fit into the memory of {files.device}"
                ) from error
            raise ModelLoadError(
                f"{files.path}: the rwkv package cannot run these weights "
                f"({type(error).__name__}: {str(error)[:300]}); expected a released checkpoint of "
                "RWKV version 4 to 7"
            ) from error

    @property
    def max_batch_tokens(self) -> int | None:
        """Any number: rows are run one by one."""
        return None

    def losses(
        self,
        inputs: Sequence[Tokens],
        targets: Sequence[Tokens],
        alphabet: Tokens | None = None,
    ) -> list[Losses]:
        """As ``Backend.losses``, with the softmax in float32."""
        try:
            return [self._losses(*row, alphabet) for row in zip(inputs, targets, strict=True)]
        except RuntimeError as error:
            if not is_memory_full(error):
                raise
            full = DeviceFull(str(error))
        # Only here are the failed pass's arrays released.
        torch.cuda.empty_cache()
        raise full

    @torch.inference_mode()
    def _losses(self, inputs: Tokens, targets: Tokens, alphabet: Tokens | None = None) -> Losses:
        among = None if alphabet is None else torch.from_numpy(alphabet).to(self._device)
        first = len(inputs) - len(targets)  # position of the first that is scored
        state = None
        nats = [np.zeros(0)]
        for begin in range(0, len(inputs), _SLICE_TOKENS):
            ids = inputs[begin : begin + _SLICE_TOKENS]
            end = begin + len(ids)
            wanted = targets[max(begin - first, 0) : max(end - first, 0)]
            is_scored = len(wanted) > 0  # if not, the head is run on the last position alone
            logits, state = self._model.forward(ids.tolist(), state, full_output=is_scored)
            if is_scored:
                rows = logits.reshape(len(ids), -1)[-len(wanted) :]
                found = cross_entropy(rows, torch.from_numpy(wanted).to(rows.device), among)
                nats.append(found.double().cpu().numpy())
        return np.concatenate(nats)


def _import_package(with_v7: bool) -> ModuleType:
    """Import a copy of ``rwkv.model`` for one model."""
    set_rwkv_environment(with_v7)
    path = package_folder() / "model.py"
    spec = importlib.util.spec_from_file_location("rwkv.model", path)
    if spec is None or spec.loader is None:
        raise ModelLoadError(f"{path}: is missing; install the rwkv package again")
    module = importlib.util.module_from_spec(spec)
    vars(module)["print"] = _do_nothing  # it reports on standard output
    with _without_torchscript(), _keeping_precision():
        spec.loader.exec_module(module)
    # It collects garbage after every layer: half a second each, for nothing that is in a cycle.
    vars(module)["gc"] = SimpleNamespace(collect=_do_nothing)
    return module


def _do_nothing(*values: object, **options: object) -> None:
    pass


@contextmanager
def _without_torchscript() -> Iterator[None]:
    """Let what asks for TorchScript have plain Python; version 7 asks whatever the environment."""
    replaced = {
        "ScriptModule": torch.nn.Module,
        "script_method": lambda function: function,
        "script": lambda function: function,
    }
    kept = {name: getattr(torch.jit, name) for name in replaced}
    vars(torch.jit).update(replaced)
    try:
        yield
    finally:
        vars(torch.jit).update(kept)


@contextmanager
def _keeping_precision() -> Iterator[None]:
    """Undo that the package lets matrix products of the whole process have ten bits less."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    kept = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = kept


def _read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a checkpoint's tensors, having made sure that it holds nothing else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what it may not be able to read: it will tell
            tensors: Any = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
    except _DEFECTS as error:
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
            f"{path}: expected tensors by name; one that the rwkv package has converted for a "
            "strategy is of no use, give the released file"
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
