"""The rwkv package: one checkpoint at a time, for losses of texts and for their continuation.

The package is imported again for each model, because its module supports only one version, dtype
and device at a time. TorchScript is disabled, because its optimiser may change losses between runs.
"""

from __future__ import annotations

import importlib.util
import struct
import threading
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
from core.errors import ModelLoadError
from models.rwkv_tokenizer import RwkvTokenizer, package_folder
from models.scoring.forward import cross_entropy, or_device_full
from models.scoring.scorer import Losses, Tokens
from models.weights.files import MODEL_FAILURES
from models.weights.loading import is_memory_full

# Number of tokens run at once: enough for fast matrix products. More tokens would need more memory
# for logits (float32: 67 MB for World), and version 5's memory grows with the square of the length.
_SLICE_TOKENS = 256
STRATEGY_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
DEFECTS = (*MODEL_FAILURES, EOFError, UnpicklingError, struct.error)
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


class RwkvEngine:
    """Runs an RWKV model on one row at a time; each row starts with an empty state.

    Raise ModelLoadError if the package cannot run a model with these weights.
    """

    max_batch_tokens: int | None = None  # no maximum, because rows are run one by one

    def __init__(self, files: RwkvFiles) -> None:
        strategy = f"{files.device} {STRATEGY_DTYPES[files.dtype]}"
        # For version 7, the package appends the suffix itself.
        name = str(files.path.with_suffix("") if files.is_v7 else files.path)
        self._device = files.device
        self._vocabulary = files.num_rows
        try:
            with _import_lock:
                module = _import_package(files.is_v7)
                # The lock is held, because the constructor reads environment variables, too.
                self._model: Any = module.RWKV(name, strategy)
            self._losses(np.arange(3), np.arange(2))
        except DEFECTS as error:
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
    def vocabulary(self) -> int:
        """Number of token ids that have an embedding."""
        return self._vocabulary

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
    with _without_torchscript(), _keeping_precision():
        spec.loader.exec_module(module)
    # The package collects garbage after every layer, which takes 0.5 s and has no effect.
    vars(module)["gc"] = SimpleNamespace(collect=_do_nothing)
    return module


def _do_nothing(*values: object, **options: object) -> None:
    pass


@contextmanager
def _without_torchscript() -> Iterator[None]:
    """Replace TorchScript by plain Python; the package's setting has no effect in version 7."""
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
    """Restore the process-wide precision of matrix products, which the package reduces."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    kept = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = kept
