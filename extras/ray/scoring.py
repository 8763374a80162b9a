"""Scoring of models' cells on the nodes of a Ray cluster; requires the packages ``ray``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from prefect import flow
from prefect_ray.context import remote_options

from core.errors import OrchestrationError
from core.month import Period
from core.settings import Settings
from extras.ray.cluster import ClusterTaskRunner, connected, plan_on_node, share_of
from instruments import driver
from instruments.driver import Summary, WorkRequest
from instruments.losses import ScoringPlan
from instruments.runner import Ended, Failure, Plan
from models.catalogue import find_model
from tasks.cells import as_tasks
from tasks.prefect.fan_out import run_task
from tasks.prefect.telling import tell


def work_on_ray(
    request: WorkRequest,
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
) -> Summary:
    """Plan and score on the cluster, in a flow run of its own; return the work that was done.

    Raises:
        OrchestrationError: the cluster or the Prefect server is not available.
    """
    window = None if months is None else list(map(str, months))
    with connected(settings) as resources:
        nodes = _Nodes(sources, window, settings, resources)
        on_nodes = replace(request, plan=nodes.plan, prepare=lambda plan: None)

        @flow(name="score on Ray", task_runner=ClusterTaskRunner())
        def score_on_nodes() -> Summary:
            try:
                return driver.work(on_nodes, settings, nodes.execute)
            finally:
                tell("ending")

        return score_on_nodes()


class _Nodes:
    """The nodes of a cluster, which plan and score."""

    def __init__(
        self,
        sources: list[str] | None,
        months: list[str] | None,
        settings: Settings,
        resources: dict[str, float],
    ) -> None:
        self._given: dict[str, Any] = {"sources": sources, "months": months, "settings": settings}
        self._resources = resources
        self._settings: dict[str, Settings] = {}  # with device and dtype of the nodes, by model

    def plan(self, model: str) -> Plan[Any]:
        """Plan on a node, since the keys of the cells depend on its device and dtype.

        Raises:
            OrchestrationError: the cluster has no CPU or GPU, or planning failed.
        """
        settings: Settings = self._given["settings"]
        share = share_of(find_model(model, settings), self._resources)
        with remote_options(**share.options):
            planned = run_task(plan_on_node, f"score {model}", model=model, **self._given)
        if isinstance(planned, Failure):
            raise OrchestrationError(planned.why)
        plan, self._settings[planned[0].entry.name] = planned
        return PlanOfNodes(plan.entry, plan.cells, plan.pending, plan.refusals)

    def execute(
        self, plan: Plan[Any], groups: Iterable[tuple[Any, ...]], settings: Settings
    ) -> Iterator[Ended]:
        """Run groups as tasks on the nodes; see ``Execute``."""
        own = self._settings[plan.entry.name]
        share = share_of(plan.entry, self._resources)
        if not plan.entry.backend.answers_together:  # on a server, all nodes share a fixed limit
            own = own.model_copy(update={"in_flight": own.in_flight or 2 * share.slots})
        with remote_options(**share.options):
            yield from as_tasks(plan, groups, own)


class PlanOfNodes(ScoringPlan):
    """A plan whose model is loaded by the nodes, not by this process."""

    def prepare(self, settings: Settings) -> list[Failure]:
        """Do nothing: planning on the node has loaded the model."""
        return []
