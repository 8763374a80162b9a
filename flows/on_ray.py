"""Scoring of a model's cells on the nodes of a Ray cluster; requires the extra ``ray``."""

from __future__ import annotations

from prefect import flow
from prefect_ray.context import remote_options

from core.errors import OrchestrationError
from core.month import Period
from core.settings import Settings
from instruments.driver import run_plan
from instruments.losses import ScoringPlan
from instruments.runner import Failure
from models.catalogue import find_model
from tasks.cells import score_cells
from tasks.prefect.fan_out import as_tasks, fan_out
from tasks.prefect.ray_cluster import ClusterTaskRunner, connected, plan_on_node, share_of
from tasks.prefect.server import settle_task_runs


def score_on_ray(
    model: str,
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
    run: str | None = None,
) -> tuple[ScoringPlan, list[Failure]]:
    """Plan and score on the cluster, in a separate flow run; return the plan and the failures.

    Raises:
        OrchestrationError: the cluster or the Prefect server is not available, the cluster has
            no CPU or GPU, or planning failed.
        UnknownName: the model is not in the catalogue.
    """
    entry = find_model(model, settings)
    with connected(settings) as resources:
        share = share_of(entry, resources)
        if not entry.backend.answers_together:  # on a server, all nodes share one fixed limit
            in_flight = settings.in_flight or 2 * share.slots
            settings = settings.model_copy(update={"in_flight": in_flight})
        window = None if months is None else list(map(str, months))
        with remote_options(**share.options):
            return score_on_nodes(model, sources, window, settings, run)


@flow(name="score on Ray", flow_run_name="score {model} on Ray", task_runner=ClusterTaskRunner())
def score_on_nodes(
    model: str,
    sources: list[str] | None,
    months: list[str] | None,
    settings: Settings,
    run: str | None = None,
) -> tuple[ScoringPlan, list[Failure]]:
    """Plan on one node, and score on all nodes; call this inside ``connected``."""
    given = {"model": model, "sources": sources, "months": months, "settings": settings}
    try:
        [planned] = fan_out(plan_on_node, [(f"score {model}", given)], step=None)
        if isinstance(planned, Failure):
            raise OrchestrationError(planned.why)
        plan, settings = planned
        return plan, run_plan(plan, settings, as_tasks(score_cells), run).failures
    finally:
        settle_task_runs()
