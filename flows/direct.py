"""`tidemark score` and `tidemark land`: the same steps without Prefect (docs/adr/0007)."""

from __future__ import annotations

from pathlib import Path

from core import progress
from core.errors import TidemarkError, UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from models.catalogue import find_model
from tasks.canary import check_canary, is_canary_due
from tasks.fan_out import hole_of
from tasks.landing import describe_models, land_finished, publish_alone
from tasks.scoring import (
    ScoringPlan,
    load_model,
    plan_scoring,
    require_sealed,
    score_group,
    unscored,
)
from warehouse.land import open_warehouse


def score_and_land(
    settings: Settings,
    models: list[str],
    sources: list[str] | None,
    months: list[Month] | None,
    protocols: list[str],
) -> tuple[int, list[str]]:
    """Score what is not scored, land it and publish.

    Returns:
        How many cells landed, and what failed; the neighbours of a failed cell land all the same.

    Raises:
        UsageError: an unknown name, or nothing is sealed of what was asked for.
    """
    for model in models:
        find_model(model, settings)  # a misspelt one is found before another is scored for hours
    require_sealed(Store(settings.home), sources, months, settings.corpus_as_of)
    landed, failures = 0, []
    for model in models:
        try:
            plan = plan_scoring(model, protocols, sources, months, settings)
            load_model(plan, settings)
        except UsageError:
            raise
        except TidemarkError as error:
            failures.append(f"{model}: {error}")
            continue
        failures += [f"{model}: {why}" for why in plan.refused]
        if plan.pending and plan.entry.kind not in ("control", "remote"):
            failures += _drift(settings)
        failures += _score(plan, settings)
        landed += land_finished(plan.entry, plan.cells, settings)
    publish_alone(settings)
    return landed, failures


def _score(plan: ScoringPlan, settings: Settings) -> list[str]:
    """Score the pending cells, those that other processes are scoring last; say what failed."""
    failures, groups = [], plan.groups
    for wait in (False, True):
        claimed = []
        for number, cells in enumerate(groups, start=1):
            try:
                claimed.append(score_group(cells, plan.entry, settings, wait))
            except Exception as error:  # noqa: BLE001, its neighbours go on
                failures.append(str(hole_of(str(cells[0]), error)))
            progress.report(f"score {plan.entry.name}", number, len(groups))
        groups = unscored(claimed, settings)
    return failures


def _drift(settings: Settings) -> list[str]:
    """See after an upgrade whether models are computed as before; what is wrong, if anything."""
    if not is_canary_due(settings):
        return []
    run = check_canary(settings)
    return [] if run.is_well else [str(run)]


def land_files(settings: Settings, files: list[Path], replace: bool) -> tuple[int, list[str]]:
    """Land foreign losses, each file whole or not at all, and publish.

    Returns:
        How many files landed (those that were landed already count), and what is wrong with the
        others.
    """
    landed, failures = 0, []
    with open_warehouse(settings) as warehouse:
        for number, path in enumerate(files):
            try:
                warehouse.land_file(path, replace=replace)
                landed += 1
            except TidemarkError as error:
                failures.append(str(error))
            progress.report("land", number + 1, len(files))
        describe_models(warehouse, settings)
    if landed:
        publish_alone(settings)
    return landed, failures
