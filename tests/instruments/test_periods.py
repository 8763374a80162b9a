"""Half-months and weeks from the crawl to the figures, beside months that stay as they are."""

import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import list_sealed
from core.errors import UsageError
from core.month import Month, Period
from core.periods import HalfMonth, Week
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from instruments.losses import score_and_land
from instruments.planning import check_request, last_period, plan_crawl
from instruments.status import find_status
from simulator.server import Web, serve
from simulator.world import World
from tests.tiers import needs_extra
from warehouse.read.check import check_home
from warehouse.read.query import query

MONTHS = Month("2024-01"), Month("2024-02")
HALVES = [HalfMonth(text) for text in ("2024-01a", "2024-01b", "2024-02a", "2024-02b")]
MODELS = ["control:gzip", "control:zstd"]
OF_MONTHS = (
    "monthly_loss", "headline", "monthly_rank_at([])", "model_difference", "coverage",
    "train_test_gap_at(date '2024-02-01')",
    "tbi_likelihood", "control_adjusted_gap_at(date '2024-02-01')",
)  # fmt: skip


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(3, *MONTHS, stories_per_month=24)) as running:
        yield running


@pytest.fixture
def simulated(settings: Settings, web: Web) -> Settings:
    sites = dict(web.urls)
    return settings.model_copy(update={"sites": sites, "request_interval_s": 0})


def crawl(settings: Settings, source: str, *periods: Period) -> None:
    store = Store(settings.home, settings.scratch)
    for period in periods:
        crawl_partition(source, period, store, settings)


def score(settings: Settings, models: list[str] = MODELS) -> None:
    landed, failures = score_and_land(settings, models, None, None, ["default"])
    assert landed
    assert failures == []


def figures(settings: Settings, relation: str) -> list[dict[str, Any]]:
    """Return the rows of a view of the source hackernews, and of means over sources.

    Floats are rounded: the ends of intervals are sums over replicates, in any order.
    """
    rows = query(settings, f"from {relation} order by all").to_pylist()
    return [
        {name: round(each, 10) if isinstance(each, float) else each for name, each in row.items()}
        for row in rows
        if row.get("source") in (None, "hackernews")
    ]


@pytest.mark.long
@needs_extra("more_sources")  # each text of GOV.UK is whole in each period
def test_half_months_have_the_figures_of_their_texts(simulated: Settings) -> None:
    month, halves, week = MONTHS[1], HALVES[2:], Week("2024-W07")
    crawl(simulated, "govuk", month)
    crawl(simulated, "govuk:half-month", *halves)
    crawl(simulated, "govuk:week", week)
    score(simulated, MODELS[:1])
    rows = query(simulated, "from internal.period_loss order by source, month").to_pylist()
    assert [(row["source"], row["period"], row["month"]) for row in rows] == [
        ("govuk", "month", month.first_day),
        *(("govuk:half-month", "half-month", half.first_day) for half in halves),
        ("govuk:week", "week", week.first_day),
    ]
    for name in ("num_documents", "num_bytes", "nll_nats"):  # each text is compressed alone
        whole, first, second = (row[name] for row in rows[:3])
        assert math.isclose(first + second, whole, rel_tol=1e-12), name
    months = query(simulated, "select source, month from monthly_loss").to_pylist()
    assert months == [{"source": "govuk", "month": month.first_day}]


@pytest.mark.slow
def test_figures_of_months_stay_as_they_are(simulated: Settings) -> None:
    crawl(simulated, "hackernews", *MONTHS)
    score(simulated)
    before = {relation: figures(simulated, relation) for relation in OF_MONTHS}
    crawl(simulated, "hackernews:half-month", *HALVES)
    crawl(simulated, "hackernews:week", Week("2024-W07"))
    score(simulated)
    assert {relation: figures(simulated, relation) for relation in OF_MONTHS} == before
    [gap] = query(
        simulated,
        "from train_test_gap_at(date '2024-02-01') "
        "where source = 'hackernews:half-month' and model = 'control:zstd'",
    ).to_pylist()
    assert (gap["num_months_before"], gap["num_months_after"]) == (2, 2)
    assert gap["bits_per_byte_gap"] is not None
    assert gap["p_value"] is None
    snapshot = Path(simulated.home) / "warehouse.duckdb"
    assert list(check_home(snapshot, Store(simulated.home), is_deep=True)) == []


def test_a_run_of_half_months_is_planned_and_shown(simulated: Settings) -> None:
    request = check_request(HALVES[:2], ["hackernews:half-month"], MODELS, simulated)
    assert request.partitions() == [("hackernews:half-month", half) for half in HALVES[:2]]
    crawl(simulated, "hackernews:half-month", HALVES[0])
    crawl(simulated, "hackernews", MONTHS[0])
    shown = find_status(simulated, HALVES[:2]).partitions
    assert shown == {"hackernews:half-month": ("sealed", "missing")}
    assert find_status(simulated, None).partitions == {"hackernews": ("sealed",)}
    sealed = sorted(str(seal.partition) for seal in list_sealed(Store(simulated.home)))
    assert sealed == ["hackernews 2024-01", "hackernews:half-month 2024-01a"]


@pytest.mark.parametrize(
    ("sources", "periods", "message"),
    [
        (None, HALVES[:1], "name the sources of half-months, such as hackernews:half-month"),
        (
            ["hackernews"],
            HALVES[:1],
            "2024-01a is a half-month, of the source hackernews:half-month",
        ),
        (["hackernews:week"], MONTHS[:1], "hackernews:week has weeks, such as 2024-W01"),
        pytest.param(
            ["wikipedia_monitored:half-month"],
            HALVES[:1],
            "only wikipedia_monitored: its texts are",
            marks=needs_extra("more_sources"),
        ),
    ],
)
def test_a_run_of_other_periods_than_the_source_has_is_refused(
    settings: Settings, sources: list[str] | None, periods: list[Period], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        plan_crawl(sources, periods, settings)


@pytest.mark.parametrize(
    ("sources", "day", "period"),
    [
        (None, "2024-03-09", "2024-02"),
        (["hackernews:half-month"], "2024-03-16", "2024-03a"),
        pytest.param(  # arXiv: 7 days
            ["hackernews:half-month", "arxiv:half-month"],
            "2024-03-22",
            "2024-02b",
            marks=needs_extra("arxiv"),
        ),
        (["hackernews:week"], "2024-03-12", "2024-W10"),
    ],
)
def test_the_last_period_is_one_that_the_sources_list(
    sources: list[str] | None, day: str, period: str
) -> None:
    now = dt.datetime.fromisoformat(f"{day}T03:00+00:00")
    assert str(last_period(sources, now)) == period


def test_sources_of_two_kinds_have_no_last_period() -> None:
    with pytest.raises(UsageError, match="hackernews:week and hackernews have different periods"):
        last_period(["hackernews:week", "hackernews"])
