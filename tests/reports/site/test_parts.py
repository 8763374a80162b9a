"""One page alone, and parts of pages."""

import json
from pathlib import Path

import polars as pl
import pytest

from core.errors import TidemarkError, UsageError
from core.settings import Settings
from reports.site.build import opened_site, write_site
from reports.site.charts import MAX_ALONE, WIDEST, Drawer, draw, with_data
from reports.site.figure import Column, cell
from reports.site.pictures.watermarks import svg_size

pytestmark = pytest.mark.long


def test_one_page_is_written_alone(usual: Settings) -> None:
    page = Path(write_site(usual, "models/early"))
    before = {path: path.stat().st_mtime_ns for path in page.parents[1].rglob("*.html")}
    assert Path(write_site(usual, "models/early.html")) == page
    changed = {path for path, time in before.items() if path.stat().st_mtime_ns != time}
    assert changed == {page}
    for wrong, says in (
        ("nothing", "the pages are index.html"),
        ("compar", "did you mean compare?"),
        ("models/ealry", "did you mean models/early?"),
    ):
        with pytest.raises(UsageError) as refused:
            write_site(usual, wrong)
        assert str(refused.value).startswith(f"no page {wrong!r}; {says}")


@pytest.mark.parametrize("form", ["view", "facet"])
def test_charts_with_long_names_are_drawn_narrower(form: str) -> None:
    rows = pl.DataFrame({"name": ["x" * 24] * 2, "at": [0, 1]})
    label = {
        "mark": {"type": "text", "align": "left"},
        "encoding": {
            "x": {"field": "at", "type": "quantitative"},
            "text": {"field": "name"},
        },
    }
    view = {"width": 800, "height": 40, **label}
    facet = {"facet": {"row": {"field": "name"}}, "spec": view}
    drawn = draw("chart", with_data(view if form == "view" else facet, rows))
    assert WIDEST - 60 < svg_size(drawn.svg)[0] <= WIDEST
    again = json.loads(drawn.vega)
    assert "800" not in json.dumps([again.get("width"), again.get("signals")])


def test_a_process_that_draws_and_is_ended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with Drawer() as drawer:
        for number in range(MAX_ALONE + 1):
            drawer.add(str(number), {})
        with pytest.raises(TidemarkError, match=r"draws charts ended \(1\)"):
            drawer.drawing("0")


def test_one_thread_computes_the_sums_of_a_site(usual: Settings) -> None:
    with opened_site(usual) as site:
        [threads] = site.connection.execute("select current_setting('threads')").fetchone() or ()
    assert threads == 1  # sums of several threads differ in the last digit


@pytest.mark.parametrize("num_charts", [1, MAX_ALONE + 1])
def test_a_chart_is_returned_under_its_name(num_charts: int) -> None:
    with Drawer() as drawer:
        for number in range(num_charts):
            rows = pl.DataFrame({"x": [number, number + 1]})
            spec = {"mark": "point", "title": f"chart {number}", "encoding": {"x": {"field": "x"}}}
            drawer.add(str(number), with_data(spec, rows))
        drawn = [drawer.drawing(str(number)).svg for number in range(num_charts)]
    assert [f"chart {number}" in svg for number, svg in enumerate(drawn)] == [True] * num_charts


def test_each_decay_of_a_model_has_its_interval_and_reason(usual: Settings) -> None:
    with opened_site(usual) as site:
        names = site.query("model_sources", protocol=usual.protocol)[1].columns
    decays = [name for name in names if name.startswith("decay_") and name.endswith("_pct")]
    assert decays
    assert {f"{name}_{end}" for name in decays for end in ("low", "high")} <= set(names)
    assert "decay_reason" in names


def test_a_value_without_its_interval_says_why() -> None:
    column = Column("decay", "decay", "+.1f", "low", "high", why="reason")
    row = {"decay": 1.0, "low": None, "high": None, "reason": "1 quarter; 2 are needed"}
    assert cell(row, column).why == "1 quarter; 2 are needed"
    assert cell({**row, "decay": None}, column).why == "1 quarter; 2 are needed"
    assert cell({**row, "low": 0.5, "high": 1.5}, column).why == ""


def test_the_board_reads_reasons_of_dashes(usual: Settings) -> None:
    with opened_site(usual) as site:
        names = site.query("board", protocol=usual.protocol)[1].columns
    assert {"gap_reason", "ageing_reason", "cutoff_reason"} <= set(names)
