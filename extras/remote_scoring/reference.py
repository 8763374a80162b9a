"""The weights of a remote model on this machine, to compare a server's likelihoods with."""

from __future__ import annotations

from pathlib import Path

from core.errors import ModelError
from core.settings import Settings
from extras.remote_scoring.probe import Reference
from models.scoring.forward import Forward
from models.weights.checkpoint import open_checkpoint
from models.weights.files import ADAPTER_CONFIG, examine_weights, first_line, is_whole
from models.weights.loading import load_weights

_DTYPE = "float32"
_MOST_BYTES = 2**32  # maximum size of the weights' files; larger ones take minutes on a CPU


def open_reference(folder: Path, settings: Settings) -> Reference:
    """Load the weights in the folder of a remote model's tokenizer, in float32.

    Without weights, with weights that are too large, and with those that cannot be loaded, the
    reference has no engine, and states the reason.
    """
    if not is_whole(folder, is_trusted=False) or (folder / ADAPTER_CONFIG).is_file():
        return Reference(None, "not compared with the weights, which are not on this machine")
    try:
        size = examine_weights(folder, str(folder), is_trusted=False).num_bytes
        if size > _MOST_BYTES:
            return Reference(None, f"not compared with the weights, which have {size:,} bytes")
        files = open_checkpoint(str(folder), None, settings.model_copy(update={"dtype": _DTYPE}))
        engine = Forward(load_weights(files))
    except ModelError as error:
        return Reference(None, f"not compared with the weights: {first_line(error)}")
    return Reference(engine, f"compared with the same weights here, in {_DTYPE}")
