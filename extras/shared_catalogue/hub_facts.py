"""A comparison of catalogue entries with the hub: release, size, licence and context.

One request a model. The hub gives the day on which the repository was made, which may lie before
the release, and the number of weights in safetensors files.
"""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any, NamedTuple

from huggingface_hub import HfApi, ModelInfo

from core.settings import Settings
from core.within import answer_within
from models.catalogue import ModelEntry
from models.weights.hub import (
    TIMEOUT_S,
    WHOLE_TIMEOUT_S,
    check_revision,
    endpoint_of,
    explain_failures,
)

_FIRST_DAY = dt.date(2022, 3, 2)  # the hub's day for all repositories that are older than this
_DAYS = 45  # tolerated days between the first day of a repository and the release
_SHARE = 0.1  # tolerated difference of sizes: makers round, and some omit embeddings


class Difference(NamedTuple):
    """A fact of an entry that is not the hub's."""

    model: str
    fact: str
    catalogue: object
    hub: object


def compare_with_hub(entry: ModelEntry, settings: Settings) -> list[Difference]:
    """Return the facts that differ; facts that entry or hub lack are skipped.

    Raise ModelLoadError if the hub does not have the model or cannot be reached.
    """
    revision = check_revision(entry.location, entry.revision)
    with explain_failures(entry.location, revision):
        ask = partial(
            HfApi(endpoint=endpoint_of(settings)).model_info,
            entry.location,
            revision=revision,
            expand=["createdAt", "safetensors", "cardData", "config"],
            timeout=TIMEOUT_S,
        )
        found = _facts(answer_within(WHOLE_TIMEOUT_S, ask))
    differences: list[Difference] = []
    for fact, theirs in found.items():
        ours = getattr(entry, fact)
        is_comparable = ours is not None and theirs is not None
        if is_comparable and not _agree(ours, theirs):
            differences.append(Difference(entry.name, fact, ours, theirs))
    return differences


def _facts(record: ModelInfo) -> dict[str, object]:
    """Return what the Hub's record of a model states, None for what it does not."""
    card: Any = record.card_data or {}
    licence = card.get("license")
    created = record.created_at.date() if record.created_at else None
    return {
        "released": None if created == _FIRST_DAY else created,
        "parameters": record.safetensors.total if record.safetensors else None,
        "licence": card.get("license_name") or licence if licence == "other" else licence,
        "context": (record.config or {}).get("max_position_embeddings"),
    }


def _agree(ours: object, theirs: object) -> bool:
    """Return True if two facts are equal, or dates and numbers are near."""
    if isinstance(ours, dt.date) and isinstance(theirs, dt.date):
        return abs((ours - theirs).days) <= _DAYS
    if isinstance(ours, int) and isinstance(theirs, int):
        return abs(ours - theirs) <= _SHARE * theirs
    return str(ours).lower() == str(theirs).lower()
