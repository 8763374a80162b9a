"""Planted worlds, a protocol each, and the rows that views have of them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from tests.losses import loss_row
from tests.warehouse.reasons import lower_ends
from warehouse.database.schema import describe_view, is_macro, list_views, qualify
from warehouse.database.statements import Statements
from warehouse.database.writer import connected
from warehouse.estimates.estimate import estimate
from warehouse.land.losses import open_warehouse
from warehouse.read.query import run_statement

FIRST = Month("2022-01")
CONTROL = "control:zstd"
NOISE = 0.004
SHOCK = 0.02
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Model:
    """A planted model; months are positions. Its loss rises by ``gap`` after each of ``ends``."""

    cutoff: int | None = 11  # stated
    ends: tuple[int, ...] = (11,)
    gap: float = 0.2
    gap_sources: tuple[str, ...] = ("blog", "news")
    drift: float = 0  # a month
    sources: tuple[str, ...] = ("blog", "news")
    months: tuple[int, int] = (0, 24)  # half-open
    has_own_documents: bool = False


@dataclass(frozen=True)
class World:
    """Models and a compressor that read the same months."""

    models: Mapping[str, Model] = field(default_factory=dict)
    num_months: int = 24
    regime: int | None = None  # first month of a regime
    site_break: int | None = None  # first month of a higher loss of all, the compressor included
    has_control: bool = True
    num_documents: int = 2  # of each month and source


STAGGERED = {"early": Model(7, (7,)), "middle": Model(11, (11,)), "late": Model(15, (15,))}
APART = {"early": Model(5, (5,), months=(0, 12)), "late": Model(17, (17,), months=(12, 24))}
WORLDS = {
    "steps": World(STAGGERED),
    "steady": World({name: Model(each.cutoff, ()) for name, each in STAGGERED.items()}),
    "short": World({"early": Model(2, (2,)), "late": Model(4, (4,))}, num_months=7),
    "edges": World(
        STAGGERED
        | {"first": Model(0, (0,)), "before": Model(-5, ()), "after": Model(30, ())}
        | {"nearly-last": Model(22, (22,))}
    ),
    "alone": World({"unknown": Model(None, (11,))}),
    "alone-steady": World({"unknown": Model(None, ())}),
    "without-control": World({"unknown": Model(None, (11,))}, has_control=False),
    "unknown-pair": World({"a": Model(None, (7,)), "b": Model(None, (15,))}, has_control=False),
    "faint": World({name: replace(each, gap=0.002) for name, each in STAGGERED.items()}),
    "site": World({"unknown": Model(None, ())}, site_break=12),
    "regime": World(STAGGERED, regime=12),
    "together": World({name: Model(cut, (9,)) for name, cut in [("a", 11), ("b", 12), ("c", 13)]}),
    "one-source": World(STAGGERED | {"odd": Model(13, (10,), gap_sources=("blog",))}),
    "drifts": World(STAGGERED | {"slow": Model(13, (), drift=0.02)}),
    "twice": World(STAGGERED | {"again": Model(9, (9, 18))}),
    "single-documents": World(STAGGERED, num_documents=1),
    "twins": World({name: Model(11, (11,)) for name in ("a", "b")}),
    "twins-alone": World({name: Model(11, (11,)) for name in ("a", "b")}, has_control=False),
    "only-after": World(STAGGERED | {"post": Model(5, (5,), months=(8, 24))}),
    "apart-in-time": World(APART),
    "apart-in-time-alone": World(APART, has_control=False),
    "one-is-old": World({"unknown": Model(None, (11,)), "old": Model(-5, ())}, has_control=False),
    "one-is-brief": World({"long": Model(), "brief": Model(7, (7,), months=(6, 9))}),
    "others": World(
        STAGGERED
        | {"apart": Model(has_own_documents=True), "news-alone": Model(sources=("news",))}
        | {"apart-unknown": Model(None, (), has_own_documents=True)}
        | {"few": Model(9, (9,), months=(6, 12))}
    ),
}


def losses_of(name: str, world: World) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(len(name))
    everyone = {f"{name}-{model}": each for model, each in world.models.items()}
    if world.has_control:
        everyone[CONTROL] = Model(None, (), months=(0, world.num_months))
    for source in ("blog", "news"):
        for month in range(world.num_months):
            common = rng.normal(0, SHOCK)
            if world.site_break is not None and month >= world.site_break:
                common += 0.2
            for document in range(world.num_documents):
                hard = rng.normal(0, 0.01)
                size = int(rng.integers(80, 120))
                for model, each in everyone.items():
                    noise = rng.normal(0, NOISE)
                    if source not in each.sources or not each.months[0] <= month < each.months[1]:
                        continue
                    rate = 2 + common + hard + noise + each.drift * month
                    if source in each.gap_sources:
                        rate += each.gap * sum(month > end for end in each.ends)
                    whose = model if each.has_own_documents else ""
                    yield loss_row(
                        model, f"{name}-{source}", (FIRST + month).first_day,
                        f"{source}-{month}-{document}-{whose}", protocol=name, num_bytes=size,
                        num_chars=size, nll_nats=rate * size * math.log(2),
                    )  # fmt: skip


def read_views(home: Path) -> dict[str, Rows]:
    """Land all worlds, and estimate; return the rows of the views with reasons or intervals."""
    settings = Settings(home=str(home))
    rows = [row for name, world in WORLDS.items() for row in losses_of(name, world)]
    facts = [
        {"name": f"{name}-{model}", **dates(each)}
        for name, world in WORLDS.items()
        for model, each in world.models.items()
    ]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(rows, schema=LOSSES), "worlds")
        warehouse.upsert_models(facts)
    found = {}
    with connected(settings) as connection:
        statements = Statements(connection)
        columns = statements.columns("landed_partitions")
        with statements.given(partitions=pa.Table.from_pylist(list(regimes()), schema=columns)):
            statements.insert("landed_partitions", "partitions")
        connection.begin()
        estimate(connection)
        for view, file in list_views().items():
            description = describe_view(file)
            is_shown = not description.is_internal and not is_macro(file)
            has_reason = "reason" in description.columns
            if is_shown and (has_reason or lower_ends(description.columns)):
                table = run_statement(connection, f"from {qualify(view)}").read_all()
                found[view] = table.to_pylist()
        connection.rollback()
    return found


def dates(model: Model) -> dict[str, object]:
    if model.cutoff is None:
        return {}
    month = FIRST + model.cutoff
    return {
        "cutoff": month.first_day, "cutoff_provenance": "planted",
        "released": (month + 1).first_day,
    }  # fmt: skip


def regimes() -> Iterator[dict[str, object]]:
    partition = {
        "partition_digest": "", "partition_version": 1, "num_documents": 0, "num_bytes": 0,
    }  # fmt: skip
    for name, world in WORLDS.items():
        for source in ("blog", "news"):
            for month in range(world.num_months if world.regime is not None else 0):
                yield partition | {
                    "source": f"{name}-{source}", "month": (FIRST + month).first_day,
                    "regime": str(month >= (world.regime or 0)),
                }  # fmt: skip
