"""What the stages of a run have in common: how they end, and what that sets going."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

from prefect.client.schemas.objects import State
from prefect.states import Completed

from core.corpus import Partition, Seal
from core.month import Month
from core.run_record import Outcome, RunRecord, Stage
from crawlers.manifest import lack_of
from tasks.events import emit_given_up, emit_report_due, emit_score_due, emit_sealed
from tasks.fan_out import Hole
from tasks.server import is_deployed, settle_task_runs

PARTIAL = "Completed (partial)"
_MAX_LISTED = 50  # holes in a state's message; the files have all

_Outcome = TypeVar("_Outcome")


def ended(outcome: _Outcome, holes: Sequence[object]) -> _Outcome:
    """Return what a flow returns: its outcome, in a state that lists the holes if there are any.

    Prefect keeps the state and gives its data, the outcome, to who has called the flow. A server
    that is away is waited for, and told of the task runs that it has missed.
    """
    settle_task_runs()
    if not holes:
        return outcome
    state: State[_Outcome] = Completed(name=PARTIAL, message=list_holes(holes), data=outcome)
    return cast(_Outcome, state)


def list_holes(holes: Sequence[object]) -> str:
    """Return one line for all holes and one each, of which there may be too many to list."""
    lines = [f"{num_of(holes)}:", *map(str, holes[:_MAX_LISTED])]
    if len(holes) > _MAX_LISTED:
        lines.append(f"and {len(holes) - _MAX_LISTED} more")
    return "\n".join(lines)


def num_of(holes: Sequence[object]) -> str:
    """Return how many holes there are, in words."""
    return "1 hole" if len(holes) == 1 else f"{len(holes)} holes"


def end_part(record: RunRecord, stage: Stage, part: str, outcome: Outcome) -> None:
    """Settle a part of a run; the last of its stage ends the stage, too."""
    record.settle(stage, part, outcome)
    end_stage(record, stage)


def end_stage(record: RunRecord, stage: Stage) -> None:
    """End a stage all parts of which have ended, if nobody has; say that the next one is due.

    In one process the next stage simply follows, and a run that was cancelled has none.
    """
    if not record.complete(stage) or not is_deployed() or record.result() is not None:
        return
    if stage == "score":
        emit_report_due(record.run)
    else:
        for model in record.request().models:
            emit_score_due(record.run, model)


def crawled(results: Iterable[Seal | Hole]) -> Outcome:
    """Sum up how the months of a source ended."""
    results = list(results)
    seals = [result for result in results if isinstance(result, Seal)]
    return Outcome(
        done=len(seals),
        holes=tuple(str(result) for result in results if isinstance(result, Hole)),
        partial=tuple(f"{seal.partition}: {lack_of(seal)}" for seal in seals if seal.is_partial),
    )


def tell(source: str, month: Month, result: Seal | Hole, since: dt.datetime) -> None:
    """Tell the server of a partition that was sealed since then, or given up."""
    if isinstance(result, Hole):
        emit_given_up(Partition(source, month), result.why)
    elif result.sealed_at is not None and result.sealed_at >= since:
        emit_sealed(result.partition, result.num_documents, lack_of(result))
