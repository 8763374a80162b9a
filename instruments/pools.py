"""The choice of the worker pool in which a model can be computed.

A model whose weights do not fit on the smallest GPU of all workers belongs to the pool ``gpu-all``.
A worker of this pool owns all GPUs of a machine. The weights' size is the number of parameters
times the bytes of the workers' dtype. The weights fit if ``ROOM_FACTOR`` times their size fits,
which leaves space for activations. Other models belong to the pool ``gpu``, whose workers own one
GPU each. Models behind servers answer in the pool ``api``, whose workers have the keys.
"""

from __future__ import annotations

from typing import Literal, get_args

from core.errors import TidemarkError
from core.gpus import Fleet, read_fleet
from core.settings import Settings
from core.storage.store import Store
from instruments.forecasts import answering_models
from models.catalogue import find_model
from models.choice import chosen_models, settings_for
from models.unloaded import weight_bytes
from models.weights.files import ROOM_FACTOR

# Work starts in this order: a model that needs all GPUs of a machine begins before they are taken.
Pool = Literal["gpu-all", "gpu", "api"]
POOLS: tuple[Pool, ...] = get_args(Pool)


def pool_of(model: str, fleet: Fleet, settings: Settings, is_asked: bool = False) -> Pool:
    """Return the pool of a model; ``gpu`` if sizes are unknown, or no GPU is needed.

    ``is_asked`` is True if the model answers questions or puzzles instead of scoring text.
    """
    try:
        entry = find_model(model, settings)
    except TidemarkError:
        return "gpu"  # a scripted model, or one that the worker reports as unknown
    if is_asked and entry.backend.is_server:
        return "api"
    memory_bytes = fleet.memory_bytes
    if not entry.backend.on_device or memory_bytes is None or not fleet.has_several:
        return "gpu"
    own = settings_for(entry, settings).dtype  # of models.yaml
    dtypes = {own} if own != settings.dtype else {host.dtype for host in fleet.hosts}
    sizes = [weight_bytes(entry, dtype) or 0 for dtype in dtypes]
    return "gpu-all" if max(sizes) * ROOM_FACTOR > memory_bytes else "gpu"


def list_models_of(pool: Pool, settings: Settings, is_asked: bool = False) -> list[str]:
    """Return the configured models that belong to a pool; compressors cannot be asked."""
    fleet = read_fleet(Store(settings.home))
    models = answering_models(settings) if is_asked else chosen_models(settings)
    return [each for each in models if pool_of(each, fleet, settings, is_asked) == pool]
