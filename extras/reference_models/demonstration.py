"""The demo: a whole run on a simulated web, with models of three known training cutoffs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

from core.errors import TidemarkError, UsageError
from core.month import Month, month_range
from core.plugins import import_parts
from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.contract import list_question_sources
from crawlers.questions.crawl import crawl_questions
from crawlers.registry import list_sources
from extras.reference_models.reference import Recipe
from extras.reference_models.training import train
from instruments.crawling import crawl_all
from instruments.driver import land, work
from instruments.forecasts import answer_request
from instruments.models import held
from instruments.planning import Request
from instruments.runner import failure_of
from instruments.runs import finish, score
from instruments.summary import RunSummary
from models.catalogue import add_model
from reports.site.build import INDEX
from simulator.server import serve
from simulator.world import World
from warehouse.database.schema import SNAPSHOT

WEB_FIRST = Month("2023-02")  # models train on the months before FIRST, too
FIRST = Month("2023-04")
LAST = Month("2024-06")
STORIES = 6  # per source and month
# Sources of extras that are deleted are left out.
SOURCES = tuple(
    each
    for each in ("arxiv", "github_projects", "wikipedia_monitored", "wikipedia_new")
    if each in list_sources()
)
CUTOFFS = {"reference-2023-08": Month("2023-08"), "reference-2024-01": Month("2024-01")}
QUESTION_SOURCES = tuple(
    each for each in ("manifold", "polymarket") if each in list_question_sources()
)
QUESTION_MONTHS = (Month("2023-06"), Month("2024-04"))  # of resolution
SOLVERS = ("scripted:small", "scripted:large")  # models with known scores
# One puzzle per level of complexity.
PUZZLES = ("find_maximum", "sort_numbers", "three_sum", "four_sum", "subset_sum")
CONTROLS = ("control:gzip", "control:zstd", "control:xz")
_MARK = "demo.json"  # file with version and seed of the demo, and True if the demo is complete
_VERSION = 3  # increase if the demo has other texts or models; no demo goes on with another's
# These settings override the user's environment, since the demo needs no configuration.
_EMBEDDED = {
    "request_interval_s": 0.0,
    "monthly_bytes": dict.fromkeys(SOURCES, 0),  # 0 bytes means no limit
    "device": "cpu",
    "dtype": "auto",
    "protocol": "default",
    "puzzle_items": 128,
}
# The smallest model whose losses still rise by more than a bit per byte after its cutoff.
_SHAPE = {"layers": 1, "hidden": 64, "vocabulary_size": 1024, "epochs": 1}


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
        summary = demo(embedded, seed)
    if not summary.holes:
        store.write_bytes(_MARK, _mark(seed, is_complete=True))
    return summary


def _mark(seed: int, is_complete: bool) -> bytes:
    return json.dumps({"version": _VERSION, "seed": seed, "is_complete": is_complete}).encode()


def _is_complete(store: Store, seed: int) -> bool:
    """Return True if this demo is complete here; raise an error if other data is."""
    if not store.exists(_MARK):
        if store.exists("corpus"):
            raise UsageError(
                f"{store.root} holds data that is no demo's; give --home another folder"
            )
        return False
    found = json.loads(store.read_bytes(_MARK))
    if found.get("version") != _VERSION:
        raise UsageError(
            f"{store.root} holds the demo of another version of tidemark; "
            "delete it, or give --home another folder"
        )
    if found["seed"] != seed:
        raise UsageError(
            f"{store.root} holds the demo of seed {found['seed']}; "
            f"give --home another folder for seed {seed}"
        )
    return found["is_complete"] and store.exists(SNAPSHOT) and store.exists(INDEX)


def demo(settings: Settings, seed: int) -> RunSummary:
    """Crawl, train reference models with known cutoffs, then score and write the report."""
    import torch  # large

    torch.set_num_threads(1)  # a second thread of these tiny models waits more than it computes
    cutoffs = {"reference-2023-03": FIRST - 1, **CUTOFFS}  # the first is the thermometer
    request = Request(
        months=tuple(month_range(FIRST, LAST)), sources=SOURCES, models=(*cutoffs, *CONTROLS)
    )
    summary = crawl_all(replace(request, months=tuple(month_range(WEB_FIRST, LAST))), settings)
    for name, cutoff in cutoffs.items():
        train_reference(name, cutoff, settings, seed, summary)
    scored = score(request, settings)
    land(scored, settings)
    for part in import_parts("demo"):
        part.land_for_demo(settings)
    ask_models(summary, settings)
    finish(summary, scored, settings)
    return summary


def train_reference(
    name: str, cutoff: Month, settings: Settings, seed: int, summary: RunSummary
) -> None:
    """Train a reference model, and add it to the catalogue; a failure becomes a hole."""
    try:
        entry = train(Recipe(name, cutoff, seed, **_SHAPE), list(SOURCES), settings)
    except TidemarkError as error:
        summary.holes.append(str(failure_of(f"train {name}", error)))
        return
    role: Literal["model", "thermometer"] = "model" if name in CUTOFFS else "thermometer"
    released = (cutoff + 1).first_day
    add_model(replace(entry, role=role, released=released), settings, replace=True)


def ask_models(summary: RunSummary, settings: Settings) -> None:
    """Put some questions and puzzles to models, and land the answers; failures become holes."""
    store = Store(settings.home, settings.scratch)
    for source in QUESTION_SOURCES:
        try:
            crawl_questions(source, list(QUESTION_MONTHS), store, settings)
        except TidemarkError as error:
            summary.holes.append(str(failure_of(f"questions {source}", error)))
    held.begin(settings)
    questions = answer_request(
        CUTOFFS, (None,), QUESTION_SOURCES, QUESTION_MONTHS, settings, ends_on=()
    )
    requests = [("answer", questions)]
    for part in import_parts("solving"):
        requests.append(("solve", part.puzzle_request(SOLVERS, PUZZLES, settings, ends_on=())))
    for verb, request in requests:
        done = work(request, settings)
        land(done, settings)
        summary.holes += [f"{verb} {failure}" for failure in done.failures]
