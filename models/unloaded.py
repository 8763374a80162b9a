"""Facts of a model that is not loaded: whether the hub provides it, and its size."""

from __future__ import annotations

from pathlib import Path

from core.errors import TidemarkError
from core.settings import Settings
from models.catalogue import ModelEntry, find_model
from models.choice import chosen_models

ONLY_COMPRESSORS = (
    "only compressors will be scored; name models in models.yaml in the data root, one a line "
    "(`- pythia-70m`), or in TIDEMARK_MODELS, for example "
    '\'["pythia-70m", "control:zstd"]\' (`tidemark models list` has the names)'
)
_ITEM_BYTES = {"float64": 8, "float32": 4}  # by dtype; else 2, also for ``auto`` on a GPU


def scores_only_compressors(settings: Settings) -> bool:
    """Return True if no configured model is a language model."""
    return all(find_model(model, settings).backend.is_control for model in chosen_models(settings))


def find_inaccessible(models: list[str] | None, settings: Settings) -> list[str]:
    """Return a message for each model of a run that the Hugging Face hub refuses to provide.

    If only compressors are configured, and no ``models`` are given, a message says so.

    Raises:
        UnknownName: there is no such model.
    """
    entries = [find_model(model, settings) for model in models or chosen_models(settings)]
    if models is None and scores_only_compressors(settings):
        return [ONLY_COMPRESSORS]
    if not any(entry.backend.from_hub for entry in entries):
        return []
    from models.weights.hub import check_access  # imported late: only hub models need it

    problems = check_access(entries, settings)
    return [why if why.startswith(name) else f"{name}: {why}" for name, why in problems.items()]


def weight_bytes(entry: ModelEntry, dtype: str) -> int | None:
    """Return the size of a model's weights in a dtype, or None if it is not known here."""
    # The number of parameters is that of the catalogue, else of the files on this machine.
    from models.weights.files import examine_weights
    from models.weights.hub import find_cached

    item_bytes = _ITEM_BYTES.get(dtype, 2)
    if entry.parameters is not None:
        return entry.parameters * item_bytes
    path = Path(entry.location).expanduser()
    if path.is_file():
        return path.stat().st_size
    trusted = entry.is_trusted
    try:
        folder = path if path.is_dir() else find_cached(entry.location, entry.revision, trusted)
        if folder is None:
            return None
        weights = examine_weights(folder, entry.location, trusted)
    except TidemarkError:
        return None  # the run of the model reports the fault
    return weights.num_elements * item_bytes if weights.num_elements else weights.num_bytes
