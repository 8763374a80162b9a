"""Tasks that train a reference model or check the canary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.cells.canary import CanaryRecord
from core.settings import Settings
from instruments.canary import check_canary
from instruments.training import train
from models.catalogue import ModelEntry
from tasks.prefect.observe import observe
from tasks.prefect.tracing import span

if TYPE_CHECKING:  # loads transformers, which takes seconds
    from models.training import Recipe


@task(task_run_name="train {recipe.name}", cache_policy=NO_CACHE, persist_result=False)
def train_model(recipe: Recipe, sources: list[str] | None, settings: Settings) -> ModelEntry:
    """Train a reference model on the sealed texts of some sources; see ``train``."""
    observe()
    with span("train", model=recipe.name):
        return train(recipe, sources, settings)


@task(task_run_name="check the canary", cache_policy=NO_CACHE, persist_result=False)
def run_canary(settings: Settings) -> CanaryRecord:
    """Score the frozen canary model, and record its drift; see ``check_canary``."""
    return check_canary(settings)
