"""The task that trains a reference model on what is sealed up to its cutoff."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from core import progress
from core.corpus import list_sealed
from core.errors import UsageError
from core.settings import Settings
from core.storage import Store
from models.catalogue import ModelEntry, models_folder
from models.reference import Recipe, train_reference
from tasks.observe import observe
from tasks.tracing import span


def train(recipe: Recipe, sources: list[str] | None, settings: Settings) -> ModelEntry:
    """Train a reference model on the sealed months of some sources (None: all) up to its cutoff.

    Images and audio are passed over. A model that was trained so before is reused; a killed
    training goes on where it was.

    Raises:
        UsageError: no dated text is sealed up to the cutoff, of one of the sources or at all.
    """
    store = Store(settings.home)
    seals = [
        seal
        for seal in list_sealed(store, as_of=settings.corpus_as_of)
        if seal.is_text
        and seal.partition.month is not None
        and seal.partition.month <= recipe.cutoff
        and (sources is None or seal.partition.source in sources)
    ]
    missing = sorted(set(sources or []) - {seal.partition.source for seal in seals})
    if missing or not seals:
        what = ", ".join(missing) or "any source"
        raise UsageError(
            f"nothing is sealed of {what} up to {recipe.cutoff} under {store.root} that is text; "
            "crawl or import texts first"
        )
    return train_reference(
        seals,
        store,
        models_folder(settings) / recipe.name,
        recipe,
        settings,
        lambda done, total: progress.report(f"train {recipe.name}", done, total),
    )


@task(task_run_name="train {recipe.name}", cache_policy=NO_CACHE, persist_result=False)
def train_model(recipe: Recipe, sources: list[str] | None, settings: Settings) -> ModelEntry:
    """Train a reference model; see ``train``."""
    observe()
    with span("train", model=recipe.name):
        return train(recipe, sources, settings)
