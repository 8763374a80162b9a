"""Loading: from an entry of the catalogue to a scorer."""

from __future__ import annotations

from core.settings import Settings
from models.catalogue import ModelEntry
from models.scorer import Scorer


def load_scorer(entry: ModelEntry, settings: Settings) -> Scorer:
    """Load what an entry describes.

    Raises:
        ModelLoadError: weights or tokenizer are missing, unsafe or broken.
        NotMeasurable: not a causal language model, or without a fast tokenizer.
        UnknownName: no such compressor.
        UsageError: the device or dtype of the settings cannot be had.
    """
    if entry.kind == "control":
        from models.compressors import Compressor

        return Compressor(entry.name)
    # torch takes seconds to import; nobody who lists models or scores compressors needs it.
    from models.causal_lm import CausalLM

    return CausalLM.load(
        name=entry.name, location=entry.location, revision=entry.revision, settings=settings
    )


def identify(entry: ModelEntry, settings: Settings) -> Scorer:
    """Placeholder: loads the scorer."""
    return load_scorer(entry, settings)
