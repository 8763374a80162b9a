"""RWKV checkpoints (``.pth``), versions 4 to 7, run by the rwkv package.

A checkpoint is a pickle of named tensors. Every file is first read with torch's restricted
unpickler. A file with other content, such as code, raises an error before the package opens it.

The package is imported again for each model, because its module supports only one version, dtype
and device at a time. TorchScript is disabled, because its optimiser may change losses between runs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import struct
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

from core.environment import set_rwkv_environment
from core.errors import ModelLoadError, UsageError
from core.settings import Settings
from extras.rwkv.tokenizer import RwkvTokenizer, open_tokenizer, package_folder
from models.catalogue import ModelEntry
from models.generation.local import GenerationIdentity, LocalGenerator
from models.scoring.cross_entropy import cross_entropy
from models.scoring.forward import or_device_full
from models.scoring.machine import describe_device, library_versions, name_of_dtype
from models.scoring.scorer import Losses, ScorerFacts, Tokens
from models.scoring.token_scorer import TokenIdentity, TokenScorer
from models.weights.checkpoint import choose_device
from models.weights.files import MODEL_FAILURES
from models.weights.loading import is_memory_full

# Number of tokens run at once: enough for fast matrix products. More tokens would need more memory
# for logits (float32: 67 MB for World), and version 5's memory grows with the square of the length.
_SLICE_TOKENS = 256
_STRATEGY_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_DEFECTS = (*MODEL_FAILURES, EOFError, UnpicklingError, struct.error)
_BATCH_TOKENS = 2048  # default tokens of a batch, whose rows are run one by one
_import_lock = threading.Lock()
# A call of the package: tokens and state to the last token's logits, and the new state.
Step = Callable[[list[int], Any], tuple[torch.Tensor, Any]]


@dataclass(frozen=True)
class RwkvFiles:
    """A checkpoint whose files were checked; its weights are not on a device yet.

    Attributes:
        revision: digest of weights and tokenizer.
        num_rows: number of token ids that have an embedding.
        is_v7: True for version 7, which has its own class in the package.
    """

    path: Path
    revision: str
    num_rows: int
    is_v7: bool
    tokenizer: RwkvTokenizer
    device: torch.device
    dtype: torch.dtype


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
    """Return what makes texts of this model comparable: revision, context, numerics."""
    identity = _identity(entry, files)
    end = files.tokenizer.text_model.eos_token
    return GenerationIdentity(
        name=identity.name,
        revision=identity.revision,
        context=identity.context,
        ends=() if end is None else (end,),
        is_chat=False,
        definition=f"plain {identity.numerics}",
    )


def _identity(entry: ModelEntry, files: RwkvFiles) -> TokenIdentity:
    """Return what makes losses of this model comparable: revision, context, numerics."""
    # A recurrent model has no maximum length. Only the catalogue may limit the context.
    accountant = files.tokenizer.text_model.accountant
    return TokenIdentity(
        entry.name,
        files.revision,
        entry.context,
        f"{files.dtype} rwkv",
        control_texts=frozenset() if accountant is None else frozenset(accountant.control.ids),
    )


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
    if dtype not in _STRATEGY_DTYPES:
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


class RwkvEngine:
    """Runs an RWKV model on one row at a time; each row starts with an empty state.

    Raise ModelLoadError if the package cannot run a model with these weights.
    """

    max_batch_tokens: int | None = None  # no maximum, because rows are run one by one

    def __init__(self, files: RwkvFiles) -> None:
        strategy = f"{files.device} {_STRATEGY_DTYPES[files.dtype]}"
        # For version 7, the package appends the suffix itself.
        name = str(files.path.with_suffix("") if files.is_v7 else files.path)
        self._device = files.device
        self.vocabulary = files.num_rows
        try:
            with _import_lock:
                module = _import_package(files.is_v7)
                # The lock is held, because the constructor reads environment variables, too.
                self._model: Any = module.RWKV(name, strategy)
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

    def may_batch(self, longest: int) -> bool:
        """Return False, because the package runs one row at a time."""
        return False

    def start(self, prompts: Sequence[Tokens], room: int) -> RwkvText:
        """Run the model on the only prompt, from an empty state."""
        (prompt,) = prompts
        return RwkvText(self._model.forward, prompt.tolist())

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        """Return losses as ``Engine.losses``; the softmax is in float32."""
        rows = list(zip(inputs, targets, strict=True))
        return or_device_full(lambda: [self._losses(*row, alphabet) for row in rows])

    @torch.inference_mode()
    def _losses(self, inputs: Tokens, targets: Tokens, alphabet: Tokens | None = None) -> Losses:
        """Return the losses of the targets in nats; the state is passed from slice to slice."""
        among = None if alphabet is None else torch.from_numpy(alphabet).to(self._device)
        first = len(inputs) - len(targets)  # position of the first scored token
        state = None
        nats = [np.zeros(0)]
        for begin in range(0, len(inputs), _SLICE_TOKENS):
            ids = inputs[begin : begin + _SLICE_TOKENS]
            end = begin + len(ids)
            wanted = targets[max(begin - first, 0) : max(end - first, 0)]
            is_scored = len(wanted) > 0  # if False, compute only the last position's logits
            logits, state = self._model.forward(ids.tolist(), state, full_output=is_scored)
            if is_scored:
                rows = logits.reshape(len(ids), -1)[-len(wanted) :]
                found = cross_entropy(rows, torch.from_numpy(wanted).to(rows.device), among)
                nats.append(found.double().cpu().numpy())
        return np.concatenate(nats)


class RwkvText:
    """A text in progress; as ``models.generation.batch.Texts``, with at most one row."""

    logits: torch.Tensor

    def __init__(self, step: Step, prompt: list[int]) -> None:
        self._step = step
        self._state: Any = None
        for begin in range(0, len(prompt), _SLICE_TOKENS):
            self._run(prompt[begin : begin + _SLICE_TOKENS])

    def read(self, tokens: torch.Tensor) -> None:
        """Run the model on the next token, int64 (1,)."""
        self._run(tokens.tolist())

    def keep(self, places: Sequence[int]) -> None:
        """Keep the row, or none."""
        self.logits = self.logits[list(places)]

    @torch.inference_mode()
    def _run(self, tokens: list[int]) -> None:
        logits, self._state = self._step(tokens, self._state)
        self.logits = logits.reshape(1, -1)  # (rows, vocabulary)


def _import_package(with_v7: bool) -> ModuleType:
    """Import a separate copy of ``rwkv.model`` for one model."""
    set_rwkv_environment(with_v7)
    path = package_folder() / "model.py"
    spec = importlib.util.spec_from_file_location("rwkv.model", path)
    if spec is None or spec.loader is None:
        raise ModelLoadError(f"{path}: is missing; install the rwkv package again")
    module = importlib.util.module_from_spec(spec)
    vars(module)["print"] = _do_nothing  # suppresses the package's output
    with _contained():
        spec.loader.exec_module(module)
    # The package collects garbage after every layer, which takes 0.5 s and has no effect.
    vars(module)["gc"] = SimpleNamespace(collect=_do_nothing)
    return module


def _do_nothing(*values: object, **options: object) -> None:
    pass


@contextmanager
def _contained() -> Iterator[None]:
    """Replace TorchScript by plain Python, and restore the precision of matrix products.

    The package's setting for TorchScript has no effect in version 7. The package reduces the
    precision for the whole process.
    """
    replaced = {
        "ScriptModule": torch.nn.Module,
        "script_method": lambda function: function,
        "script": lambda function: function,
    }
    kept = {name: getattr(torch.jit, name) for name in replaced}
    matmul = torch.backends.cuda.matmul
    cudnn = torch.backends.cudnn
    precision = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
    vars(torch.jit).update(replaced)
    try:
        yield
    finally:
        vars(torch.jit).update(kept)
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = precision


def _read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a checkpoint's tensors; raise ModelLoadError for other content."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unsupported content raises an error below
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
