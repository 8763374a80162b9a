"""The demo: the main job on a simulated web, with two planted cutoffs that must come back."""

from __future__ import annotations

import json

from prefect import flow

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from flows.run import RunSummary, crawl_months, score_models
from models.reference import Recipe
from simulator.server import serve
from simulator.world import World
from tasks.fan_out import fan_out
from tasks.planning import Request
from tasks.reporting import write_report
from tasks.training import train_model

FIRST, LAST = Month("2023-01"), Month("2024-06")
SOURCES = ("arxiv", "github_projects", "wikipedia_monitored", "wikipedia_new")
CUTOFFS = {"reference-2023-08": Month("2023-08"), "reference-2024-01": Month("2024-01")}
CONTROLS = ("control:gzip", "control:zstd", "control:xz")
_MARK = "demo.json"  # written last: what this folder holds is complete


def run_demo(settings: Settings, seed: int) -> str:
    """Run the demo in the settings' data root and return the report's address.

    A folder whose demo is complete is left as it is, so that a second call takes no time.

    Raises:
        UsageError: the folder holds the demo of another seed, or something that is no demo.
    """
    store = Store(settings.home)
    mark = {"seed": seed}
    if store.exists(_MARK):
        found = json.loads(store.read_bytes(_MARK))
        if found["seed"] != seed:
            raise UsageError(
                f"{store.root} holds the demo of seed {found['seed']}; "
                f"give --home another folder for seed {seed}"
            )
        if found.get("report") and store.exists("warehouse.duckdb"):
            return str(found["report"])
    elif store.exists("corpus"):
        raise UsageError(f"{store.root} holds data that is no demo's; give --home another folder")
    store.write_bytes(_MARK, json.dumps(mark).encode())
    with serve(World(seed, FIRST, LAST)) as web:
        summary = demo(
            seed=seed,
            settings=settings.model_copy(
                update={"sites": web.urls, "request_interval_s": 0.0, "device": "cpu"}
            ),
        )
    if not summary.holes:
        store.write_bytes(_MARK, json.dumps({**mark, "report": summary.report}).encode())
    return summary.report


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
            {"recipe": Recipe(name, cutoff, seed, epochs=1), "sources": list(SOURCES), "settings": settings},
        )
        for name, cutoff in CUTOFFS.items()
    ]
    summary.keep_holes(fan_out(train_model, calls, step="reference models", in_flight=1))
    score_models(summary, request, settings)
    summary.report = write_report(settings=settings)
    return summary
