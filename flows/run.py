"""The steps of monthly runs and back-fills; call them inside a flow."""

from __future__ import annotations

import contextvars
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from core.cells.canary import read_canary_records
from core.corpus.partition import Partition, Seal, read_seal
from core.gpus import Fleet, read_fleet
from core.month import Period
from core.settings import Settings
from core.storage.store import Store
from flows.finish import finish
from flows.rounds import Pending, Rounds
from instruments.backlog import holes_of, list_left
from instruments.canary import find_drifts
from instruments.crawling import crawl_all
from instruments.planning import Request
from instruments.pools import Pool, pool_of
from instruments.runner import Failure
from instruments.running.run_options import RunOptions
from instruments.running.stopping import stop_with_flow
from instruments.summary import RunSummary
from tasks.crawling import crawl_month
from tasks.prefect.cancelling import ends_if_cancelled
from tasks.prefect.fan_out import run_task
from tasks.prefect.server import ended
from tasks.prefect.telling import tell


def run_months(
    run: str, request: Request, settings: Settings, options: RunOptions, always: bool = False
) -> RunSummary:
    """Crawl, let workers score, land, publish and report; failures become holes.

    If ``always``, workers look at all models, even if each cell has a file: cells of a former
    version of the scorer are computed again.
    """
    store = Store(settings.home)
    former_canaries = read_canary_records(store)
    parameters = {
        "verb": "score",
        "sources": list(request.sources),
        "first": str(request.months[0]),
        "last": str(request.months[-1]),
        "run": run,
        "options": {**options.given(), "protocol": settings.protocol},
    }
    rounds = Rounds(ScoringLeft(request, run, settings, always), parameters, settings)
    with ends_if_cancelled(), ThreadPoolExecutor(1, "crawls") as pool, stop_with_flow():
        context = contextvars.copy_context()  # with the flow run
        crawl = pool.submit(context.run, crawl_all, request, settings, crawl_as_task)
        rounds.drain(crawl.done)
        summary = crawl.result()
    left = list_left(request.models, request.sources, request.months, run, settings)
    summary.holes += [*rounds.problems, *holes_of(left)]
    summary.holes += [f"canary: {record}" for record in find_drifts(store, former_canaries)]
    finish(summary, request.models, settings)
    return ended(summary, summary.holes)


class ScoringLeft:
    """The pending cells of a run's models, by pool; see ``Rounds``."""

    def __init__(self, request: Request, run: str, settings: Settings, always: bool) -> None:
        self._request = request
        self._run = run
        self._settings = settings
        self._always = always
        self._known: dict[tuple[str, Fleet], Pool] = {}  # pools of models, since look-ups are slow

    def __call__(self, completed: Collection[str]) -> Mapping[Pool, Pending]:
        """Return the pending work of each pool; workers have examined the ``completed`` models."""
        request = self._request
        fleet = read_fleet(Store(self._settings.home))
        found: dict[Pool, Pending] = {}
        left_of = list_left(
            request.models, request.sources, request.months, self._run, self._settings
        )
        for model, left in left_of.items():
            if (model, fleet) not in self._known:
                self._known[model, fleet] = pool_of(model, fleet, self._settings)
            pending = found.setdefault(self._known[model, fleet], Pending())
            pending.num_claimed += len(left.claimed)
            pending.keys[model] = frozenset(map("/".join, left.pending))
            if self._always and model not in completed:  # a pretended cell, so that work starts
                pending.keys[model] |= {"whatever names tell"}
        return found


def crawl_as_task(source: str, month: Period, settings: Settings) -> Seal | Failure:
    """Crawl and seal one month as a task run, unless it is sealed and lacks nothing."""
    seal = read_seal(Store(settings.home), Partition(source, month))
    if seal is not None and not seal.is_partial:
        return seal
    what = f"crawl {source} {month}"
    result: Seal | Failure = run_task(
        crawl_month, what, source=source, month=month, settings=settings
    )
    if isinstance(result, Failure):
        tell("given_up", Partition(source, month), result.why)
    return result
