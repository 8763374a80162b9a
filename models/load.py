"""Loading: from an entry of the catalogue to a scorer."""

from __future__ import annotations

from core.errors import NotMeasurable
from core.settings import Settings
from models.catalogue import ModelEntry
from models.scorer import Identity, Scorer


def identify(entry: ModelEntry, settings: Settings) -> Identity:
    """Find out what the cells of an entry are named after, without loading its weights.

    Raises: as ``load_scorer``, for all but the weights.
    """
    if entry.kind == "control":
        from models.compressors import Compressor

        return Compressor(entry.name)
    if entry.kind == "rwkv":
        from models.rwkv import identify_rwkv

        return identify_rwkv(entry, settings)
    if entry.kind == "remote":
        from models.remote import identify_remote

        return identify_remote(entry, settings)
    if entry.kind == "api":
        raise _only_answers(entry)
    from models.causal_lm import CausalLM

    return CausalLM.identify(
        name=entry.name, location=entry.location, revision=entry.revision, settings=settings
    )


def load_scorer(entry: ModelEntry, settings: Settings) -> Scorer:
    """Load what an entry describes.

    Raises:
        ModelLoadError: weights or tokenizer are missing, unsafe or broken.
        NotMeasurable: not a causal language model, or without a fast tokenizer; a server that does
            not give every token's likelihood; an API that writes answers only.
        ModelError: a remote model's server cannot be reached, or fails.
        UnknownName: no such compressor.
        UsageError: the device or dtype of the settings cannot be had.
    """
    if entry.kind == "control":
        from models.compressors import Compressor

        return Compressor(entry.name)
    # torch takes seconds to import; nobody who lists models or scores compressors needs it.
    if entry.kind == "rwkv":
        from models.rwkv import load_rwkv

        return load_rwkv(entry, settings)
    if entry.kind == "remote":
        from models.remote import load_remote

        return load_remote(entry, settings)
    if entry.kind == "api":
        raise _only_answers(entry)
    from models.causal_lm import CausalLM

    return CausalLM.load(
        name=entry.name, location=entry.location, revision=entry.revision, settings=settings
    )


def _only_answers(entry: ModelEntry) -> NotMeasurable:
    return NotMeasurable(
        f"{entry.name} is behind an API ({entry.location}), which writes answers and gives no "
        "likelihoods of text: it can be asked forecasting questions (`tidemark forecast`) and "
        "cannot be scored; for a server that returns prompt_logprobs, use kind remote"
    )
