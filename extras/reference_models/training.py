"""Training of reference models on sealed texts up to a chosen cutoff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core import progress
from core.corpus.partition import Seal, list_sealed, list_sealed_sources
from core.errors import UsageError, did_you_mean
from core.settings import Settings
from core.storage.store import Store
from models.catalogue import ModelEntry, models_folder

if TYPE_CHECKING:  # loads transformers, which takes seconds
    from extras.reference_models.reference import Recipe


def train(recipe: Recipe, sources: list[str] | None, settings: Settings) -> ModelEntry:
    """Train a model on the sealed months of sources (None: all) up to the recipe's cutoff.

    Sources of images and audio are skipped. A model of the same recipe and texts is reused. A
    killed training continues from its last checkpoint.

    Raises:
        UsageError: no dated text (of a requested source) up to the cutoff is sealed.
    """
    from extras.reference_models.reference import train_reference

    store = Store(settings.home)
    seals: list[Seal] = []
    for seal in list_sealed(store, as_of=settings.corpus_as_of):
        month = seal.partition.month
        is_known = month is not None and month <= recipe.cutoff
        is_wanted = sources is None or seal.partition.source in sources
        if seal.is_text and is_known and is_wanted:
            seals.append(seal)
    missing = sorted(set(sources or []) - {seal.partition.source for seal in seals})
    if missing or not seals:
        what = ", ".join(missing) or "any source"
        known = list_sealed_sources(store)
        meant = "".join(did_you_mean(source, known) for source in missing)
        raise UsageError(
            f"nothing is sealed of {what} up to {recipe.cutoff} under {store.root} that is text; "
            f"{meant}crawl or import texts first"
        )
    return train_reference(
        seals,
        store,
        models_folder(settings) / recipe.name,
        recipe,
        settings,
        lambda done, total: progress.report(f"train {recipe.name}", done, total),
    )
