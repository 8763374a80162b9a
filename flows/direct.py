"""`tidemark score`, `land`, `forecast answer`, `scylla run`: without Prefect (docs/adr/0007)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from core import progress
from core.errors import ModelError, TidemarkError, UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from models.catalogue import find_model
from tasks.answering import answer_cell, begin_spending, land_answers, plan_answers
from tasks.canary import check_canary, is_canary_due
from tasks.fan_out import hole_of
from tasks.landing import describe_models, land_finished, publish_alone
from tasks.puzzle_models import begin_puzzles
from tasks.puzzles import (
    PuzzlePlan,
    ended_without_answer,
    land_puzzles,
    plan_puzzles,
    solve_cell,
)
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


def answer_and_land(
    settings: Settings,
    models: Sequence[str],
    protocols: Sequence[str | None],
    sources: list[str] | None,
    months: list[Month] | None,
) -> tuple[int, int, list[str]]:
    """Have models answer what they have not, land it and publish.

    Returns:
        How many questions were answered, how many cells landed, and what failed; what was answered
        before a model failed lands all the same.

    Raises:
        UsageError: an unknown name, or no questions are sealed of what was asked for.
    """
    answered, landed, failures = 0, 0, []
    begin_spending(settings)
    plans = []
    for model, protocol in product(models, protocols):  # all of them before any is asked
        try:
            plans.append(plan_answers(model, protocol, sources, months, settings))
        except UsageError:
            raise
        except TidemarkError as error:
            failures.append(f"{model}: {error}")
    for plan in plans:
        model = plan.entry.name
        try:
            for number, (cell, seal) in enumerate(plan.pending, start=1):
                outcome = answer_cell(plan.entry, cell, seal, settings)
                answered += outcome.num_answers
                if outcome.lack is not None:
                    failures.append(f"{cell}: {outcome.lack}")
                progress.report(f"answer {model}", number, len(plan.pending))
        except TidemarkError as error:  # of a model: its other months would fail alike
            failures.append(f"{model}: {error}")
        landed += land_answers(plan, settings)
    publish_alone(settings)
    return answered, landed, failures


@dataclass
class Solved:
    """What ``solve_and_land`` did.

    Attributes:
        num_items: of each split, of all puzzles that were solved meanwhile.
        num_landed: puzzles of models that landed.
        num_cells: puzzles of models that are done, before or now.
        remarks: of puzzles that could not be asked.
        failures: what a next run would do again.
    """

    num_items: int = 0
    num_landed: int = 0
    num_cells: int = 0
    remarks: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def solve_and_land(
    settings: Settings, models: Sequence[str], puzzles: Sequence[str] | None
) -> Solved:
    """Have models solve the puzzles that they have not, land them and publish.

    What was solved before a model failed lands all the same.

    Raises:
        UsageError: an unknown name.
    """
    solved = Solved()
    begin_puzzles(settings)
    plans = []
    for model in models:  # all of them before any is asked
        try:
            plans.append(plan_puzzles(model, puzzles, settings))
        except UsageError:
            raise
        except TidemarkError as error:
            said = str(error).removeprefix(f"{model}: ")
            solved.failures.append(f"{model}: {said}")
    for plan in plans:
        _solve(plan, settings, solved)
        try:
            solved.num_landed += land_puzzles(plan, settings)
        except TidemarkError as error:
            solved.failures.append(f"{plan.entry.name}: {error}")
    publish_alone(settings)
    return solved


def _solve(plan: PuzzlePlan, settings: Settings, solved: Solved) -> None:
    model = plan.entry.name
    solved.num_cells += len(plan.cells) - len(plan.pending)
    for number, cell in enumerate(plan.pending, start=1):
        try:
            record = solve_cell(plan.entry, cell, settings)
        except ModelError as error:  # its other puzzles would fail alike
            solved.failures.append(f"{cell}: {error}")
            return
        except TidemarkError as error:
            solved.failures.append(f"{cell}: {error}")
            continue
        solved.num_cells += 1
        solved.num_items += record.num_items if record.status == "complete" else 0
        if why := ended_without_answer(record):
            solved.remarks.append(f"{cell}: {why}")
        if record.num_errors:
            solved.failures.append(
                f"{cell}: {record.num_errors} items have no answer; run the same command again, "
                "and only these are asked"
            )
        progress.report(f"solve {model}", number, len(plan.pending))


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
