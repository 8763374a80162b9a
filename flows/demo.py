"""The demo: a whole run on a simulated web, with models of three known training cutoffs."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from prefect import flow

from core.errors import UsageError
from core.month import Month, month_range
from core.settings import Settings
from core.storage.store import Store
from flows.forecast import crawl_questions_of
from flows.instrument import InstrumentSummary, run_model
from flows.run import RunSummary, crawl_months, report_on, score_models
from instruments.forecasts import plan_answers
from instruments.landing import land_shipped_rates
from instruments.planning import Request
from instruments.puzzles import plan_puzzles
from models.catalogue import add_model
from models.training import Recipe
from reports.site.build import INDEX
from simulator.server import serve
from simulator.world import World
from tasks.cells import answer_month, solve_puzzle
from tasks.landing import publish_warehouse
from tasks.models import train_model
from tasks.prefect.fan_out import fan_out
from tasks.prefect.storage_keys import using, worker_settings
from warehouse.database.schema import SNAPSHOT

WEB_FIRST = Month("2022-11")  # models train on the months before FIRST, too
FIRST, LAST = Month("2023-01"), Month("2024-06")
STORIES = 20  # per source and month
SOURCES = ("arxiv", "github_projects", "wikipedia_monitored", "wikipedia_new")
CUTOFFS = {"reference-2023-08": Month("2023-08"), "reference-2024-01": Month("2024-01")}
QUESTION_SOURCES = ("manifold", "polymarket")
QUESTION_MONTHS = (Month("2023-06"), Month("2024-04"))  # of resolution
SOLVERS = ("scripted:small", "scripted:large")  # models with known scores
# One puzzle per level of complexity.
PUZZLES = ("find_maximum", "sort_numbers", "three_sum", "four_sum", "subset_sum")
CONTROLS = ("control:gzip", "control:zstd", "control:xz")
_MARK = "demo.json"  # file with the seed of the demo, and True if the demo is complete
# These settings override the user's environment, since the demo needs no configuration.
_EMBEDDED = {
    "request_interval_s": 0.0,
    "monthly_bytes": dict.fromkeys(SOURCES, 0),  # 0 bytes means no limit
    "device": "cpu",
    "dtype": "auto",
    "protocol": "default",
}


def run_demo(settings: Settings, seed: int) -> RunSummary:
    """Run the demo in the data root of the settings.

    If the data root already contains a complete demo with this seed, nothing is done.

    Raises:
        UsageError: the data root contains a demo with another seed, or other data.
    """
    store = Store(settings.home)
    if _is_complete(store, seed):
        return RunSummary(report=store.url(INDEX))
    store.write_bytes(_MARK, _mark(seed, is_complete=False))
    with serve(World(seed, WEB_FIRST, LAST, STORIES)) as web:
        embedded = settings.model_copy(update={**_EMBEDDED, "sites": web.urls})
        with using(embedded):
            summary = demo(seed)
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
    return found["is_complete"] and store.exists(SNAPSHOT) and store.exists(INDEX)


@flow(name="demo")
def demo(seed: int) -> RunSummary:
    """Crawl, train reference models with known cutoffs, then score and write the report."""
    settings = worker_settings()
    cutoffs = {"reference-2022-12": FIRST - 1, **CUTOFFS}  # the first is the thermometer
    months = tuple(month_range(FIRST, LAST))
    request = Request(months=months, sources=SOURCES, models=(*cutoffs, *CONTROLS))
    summary = RunSummary()
    crawl_months(summary, replace(request, months=tuple(month_range(WEB_FIRST, LAST))), settings)
    shared = {"sources": list(SOURCES), "settings": settings}
    calls = [
        (f"train {name}", {"recipe": Recipe(name, cutoff, seed, epochs=1), **shared})
        for name, cutoff in cutoffs.items()
    ]
    results = fan_out(train_model, calls, step="reference models", in_flight=1)
    for entry in summary.keep_holes(results):
        role = "model" if entry.name in CUTOFFS else "thermometer"
        released = (cutoffs[entry.name] + 1).first_day
        add_model(replace(entry, role=role, released=released), settings, replace=True)
    score_models(summary, request, settings)
    land_shipped_rates(settings)
    ask_models(summary, settings)
    report_on(summary, settings)
    return summary


def ask_models(summary: RunSummary, settings: Settings) -> None:
    """Put some questions and puzzles to models, and publish all; failures become holes."""
    asked = InstrumentSummary()
    crawl_questions_of(QUESTION_SOURCES, list(QUESTION_MONTHS), settings, asked)
    for model in CUTOFFS:
        answers = partial(plan_answers, model, None, QUESTION_SOURCES, QUESTION_MONTHS, settings)
        run_model("answer", model, answers, answer_month, settings, asked)
    for model in SOLVERS:
        solutions = partial(plan_puzzles, model, PUZZLES, settings)
        run_model("solve", model, solutions, solve_puzzle, settings, asked)
    calls = [("publish", {"settings": settings})]
    asked.keep_holes(fan_out(publish_warehouse, calls, step="publish"))
    summary.holes += asked.holes
