"""Loading a model as an engine: in this process, in a confined one, or on several devices."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from transformers import PreTrainedModel

from core.errors import ModelLoadError
from core.plugins import import_parts
from core.settings import Settings
from models.scoring.forward import Forward
from models.scoring.machine import active_parameters, matmul_rate
from models.scoring.scorer import ConfinedEngine, Engine, ParallelEngine
from models.weights.checkpoint import CheckpointFiles
from models.weights.products import choose_libraries

_log = logging.getLogger(__name__)


class LoadedModel(NamedTuple):
    """A loaded model, with facts for the record of its cells."""

    engine: Engine
    versions: dict[str, str]
    num_active: int | None = None
    rate: float | None = None


def load_here(
    files: CheckpointFiles, settings: Settings, read: Callable[[CheckpointFiles], PreTrainedModel]
) -> LoadedModel:
    """Load a model in this process."""
    model = read(files)
    versions = {}
    libraries = choose_libraries(model, settings.scratch / "products")
    if libraries is not None:
        versions["products"] = libraries
    forward = Forward(model)
    if is_fast(files, settings):
        versions |= _quicken(forward, files)
    rate = matmul_rate(files.device, files.dtype)
    return LoadedModel(forward, versions, active_parameters(model), rate)


def load_confined(files: CheckpointFiles) -> LoadedModel:
    """Run a trusted model in a confined process, which an extra starts."""
    for part in import_parts("engines"):
        confined: ConfinedEngine = part.start_confined(files)
        what = "code of the model" if files.has_own_code else "class of transformers"
        return LoadedModel(confined, {"guard": f"{what}; {confined.guard}"})
    raise ModelLoadError(
        f"{files.location}: a model with trust: code runs in a confined process, which "
        "extras/own_code starts, and that folder is missing; install tidemark with it"
    )


def load_parallel(files: CheckpointFiles, num_devices: int) -> LoadedModel | None:
    """Let several devices share the layers of a model; return None if they do not or cannot."""
    if num_devices == 1:
        return None
    for part in import_parts("parallel"):
        reason = part.why_unshared(files, num_devices)
        if reason is not None:
            _log.info("%s: its layers are not shared by devices: %s", files.location, reason)
            return None
        engine: ParallelEngine = part.start_parallel(files, num_devices)
        means = f"{num_devices} devices by {engine.backend}"
        return LoadedModel(engine, {"tensor_parallel": means}, engine.active_parameters)
    raise ModelLoadError(
        f"{files.location}: TIDEMARK_TENSOR_PARALLEL={num_devices} needs extras/tensor_parallel, "
        "and that folder is missing; unset it"
    )


def _quicken(forward: Forward, files: CheckpointFiles) -> dict[str, str]:
    """Let an extra put fast kernels into a model; return their names, for the record."""
    for part in import_parts("kernels"):
        means: dict[str, str] = part.quicken(forward, files.context)
        return means
    raise ModelLoadError(
        f"{files.location}: TIDEMARK_KERNELS=fast needs extras/fast_kernels, and that folder is "
        "missing; use plain"
    )


def is_fast(files: CheckpointFiles, settings: Settings) -> bool:
    """Return True if fast kernels were asked for and the model takes them."""
    is_plain = settings.kernels == "plain" or files.is_trusted
    return not is_plain and files.device.type == "cuda"
