"""The demo: the main job on a simulated web, with two planted cutoffs that must come back."""

from __future__ import annotations

import json

from prefect import flow

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from flows.run import RunSummary, crawl_months, report_on, score_models
from models.reference import Recipe
from reports.page import PAGE
from simulator.server import serve
from simulator.world import World
from tasks.fan_out import fan_out
from tasks.planning import Request
from tasks.training import train_model
from warehouse.publish import SNAPSHOT

FIRST, LAST = Month("2023-01"), Month("2024-06")
SOURCES = ("arxiv", "github_projects", "wikipedia_monitored", "wikipedia_new")
CUTOFFS = {"reference-2023-08": Month("2023-08"), "reference-2024-01": Month("2024-01")}
CONTROLS = ("control:gzip", "control:zstd", "control:xz")
_MARK = "demo.json"  # says of which seed the folder is, and whether it is complete
# Whatever the user's environment says: the demo needs no configuration.
_EMBEDDED = {
    "request_interval_s": 0.0,
    "monthly_bytes": dict.fromkeys(SOURCES, 0),  # all of the little there is, in the sites' order
    "device": "cpu",
    "dtype": "auto",
    "protocol": "default",
}


def run_demo(settings: Settings, seed: int) -> RunSummary:
    """Run the demo in the settings' data root.

    A folder whose demo is complete is left as it is, so that a second call takes no time.

    Raises:
        UsageError: the folder holds the demo of another seed, or something that is no demo.
    """
    store = Store(settings.home)
    if _is_complete(store, seed):
        return RunSummary(report=store.url(PAGE))
    store.write_bytes(_MARK, _mark(seed, is_complete=False))
    with serve(World(seed, FIRST, LAST)) as web:
        summary = demo(
            seed=seed,
            settings=settings.model_copy(update={**_EMBEDDED, "sites": web.urls}),
        )
    if not summary.holes:
        store.write_bytes(_MARK, _mark(seed, is_complete=True))
    return summary


def _mark(seed: int, is_complete: bool) -> bytes:
    return json.dumps({"seed": seed, "is_complete": is_complete}).encode()


def _is_complete(store: Store, seed: int) -> bool:
    if not store.exists(_MARK):
        if store.exists("corpus"):
            raise UsageError(
                f"{store.root} holds data that is no demo's; give --home another folder"
            )
        return False
    found = json.loads(store.read_bytes(_MARK))
    if found["seed"] != seed:
        raise UsageError(
            f"{store.root} holds the demo of seed {found['seed']}; "
            f"give --home another folder for seed {seed}"
        )
    return found["is_complete"] and store.exists(SNAPSHOT) and store.exists(PAGE)


@flow(name="demo")
def demo(seed: int, settings: Settings) -> RunSummary:
    """Crawl, train up to two months, then do what every run does."""
    months = tuple(FIRST + offset for offset in range(LAST.months_since(FIRST) + 1))
    request = Request(months=months, sources=SOURCES, models=(*CUTOFFS, *CONTROLS))
    summary = RunSummary()
    crawl_months(summary, request, settings)
    calls = [
        (
            f"train {name}",
            {
                "recipe": Recipe(name, cutoff, seed, epochs=1),
                "sources": list(SOURCES),
                "settings": settings,
            },
        )
        for name, cutoff in CUTOFFS.items()
    ]
    summary.keep_holes(fan_out(train_model, calls, step="reference models", in_flight=1))
    score_models(summary, request, settings)
    report_on(summary, settings)
    return summary
