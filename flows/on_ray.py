"""Score a model's cells on the nodes of a Ray cluster; needs the extra ``ray``."""

from __future__ import annotations

from prefect import flow
from prefect_ray.context import remote_options

from core.errors import OrchestrationError
from core.month import Month
from core.settings import Settings
from models.catalogue import find_model
from tasks.fan_out import Hole, fan_out
from tasks.ray_cluster import ClusterTaskRunner, connected, plan_on_node, share_of
from tasks.scoring import ScoringPlan, score_all
from tasks.server import settle_task_runs


def score_on_ray(
    model: str, sources: list[str] | None, months: list[Month] | None, settings: Settings
) -> tuple[ScoringPlan, list[Hole]]:
    """Plan and score on the cluster, in a flow run of its own; return the plan, and what failed.

    Raises:
        OrchestrationError: the cluster, or a Prefect server, cannot be had, or it has no slot; or
            there cannot be a plan, as of a broken model.
        UnknownName: no such model.
    """
    entry = find_model(model, settings)
    with connected(settings) as resources:
        share = share_of(entry, resources)
        if entry.kind != "remote":  # that many answers its server gives together, wherever we are
            in_flight = settings.in_flight or 2 * share.slots
            settings = settings.model_copy(update={"in_flight": in_flight})
        window = None if months is None else list(map(str, months))
        with remote_options(**share.options):
            return score_on_nodes(model, sources, window, settings)


@flow(name="score on Ray", flow_run_name="score {model} on Ray", task_runner=ClusterTaskRunner())
def score_on_nodes(
    model: str, sources: list[str] | None, months: list[str] | None, settings: Settings
) -> tuple[ScoringPlan, list[Hole]]:
    """Have a node plan, and all nodes score; inside ``connected``."""
    arguments = {"model": model, "sources": sources, "months": months, "settings": settings}
    try:
        [planned] = fan_out(plan_on_node, [(f"score {model}", arguments)], step=None)
        if isinstance(planned, Hole):
            raise OrchestrationError(planned.why)
        plan, settings = planned
        return plan, score_all(plan, settings)
    finally:
        settle_task_runs()
