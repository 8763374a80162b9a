"""A site with one model and a compressor: what another model would tell is not told."""

import json
from pathlib import Path

import duckdb
import pytest

from core.month import Month
from core.settings import Settings
from reports.site.build import write_site
from reports.site.pages import model, overview
from tests.reports.curves import level, losses, step
from tests.reports.site.pages import pages_alone
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

REASON = "no other model with another known cutoff"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model whose loss rises by 0.4 after 2024-08, on 16 months of one source."""
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    figures = step("mine", "news", "2024-08", 1.0, 1.4, 16)
    figures[("mine", "news", Month("2024-03"))] = 1.3  # a month that is hard
    figures |= level("control:zstd", "news", 3.0, 16)
    cutoff = {"cutoff": Month("2024-08"), "cutoff_provenance": "stated"}
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(figures), "planted")
        warehouse.upsert_models([{"name": "mine", "kind": "causal_lm", **cutoff}])
    publish(settings)
    with pages_alone(overview, model):
        return Path(write_site(settings)).parent


def test_the_reason_for_no_gap_is_the_one_that_holds(site: Path) -> None:
    """There are months on both sides of the cutoff, so they are not what is missing."""
    page = (site / "index.html").read_text(encoding="utf-8")
    assert f"No gap can be told yet: {REASON}" in page
    assert "needs months on both sides" not in page


def test_a_curve_of_one_model_is_not_its_own_difficulty(site: Path) -> None:
    query = f"select month, rise, is_adjusted from '{site}/figures/over-time.parquet' order by 1"
    rows = duckdb.sql(query).fetchall()
    rises = {str(month)[:7]: rise for month, rise, _ in rows}
    assert not any(is_adjusted for _, _, is_adjusted in rows)
    assert rises["2024-03"] - rises["2024-02"] == pytest.approx(0.3)
    assert rises["2024-09"] - rises["2024-08"] == pytest.approx(0.4)
    described = json.loads((site / "figures" / "over-time.metadata.json").read_text())
    assert "too few models" in described["about"]


def test_a_compressor_s_curve_is_not_said_to_have_a_cutoff(site: Path) -> None:
    [file] = (site / "figures").glob("model-control-zstd-*-curves.metadata.json")
    about = json.loads(file.read_text(encoding="utf-8"))["about"]
    assert about.startswith("Bits per byte above the mean of the months")
    assert "cutoff" not in about
