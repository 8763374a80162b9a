"""Rates that others have published: a page, pages of their models, and no place on the board."""

from collections.abc import Iterator

import polars as pl
import pytest

from core.settings import Settings
from extras.imported_results import pages as published
from extras.imported_results.figures import land_shipped_rates
from reports.site import charts
from reports.site.build import opened_site
from reports.site.context import Site
from reports.site.figure import cell
from reports.site.files import metadata
from reports.site.front import rises_figure
from reports.site.pages import cutoffs, model, overview
from reports.site.pictures.cards import size_of
from tests.reports.curves import level, losses
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = Settings(home=str(tmp_path_factory.mktemp("published")))
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(level("own", "news", 1.0)), "figures")
    assert [land_shipped_rates(settings).num_changed for _ in range(2)] == [1636, 0]
    publish(settings)
    with opened_site(settings) as site:
        yield site


@pytest.mark.smoke
def test_the_page_has_what_table_3_prints(site: Site) -> None:
    [page] = published.make_pages(site)
    lines, table, *_ = page.figures
    rows = [[cell(row, each).text for each in table.columns] for row in table.rows.to_dicts()]
    shown = {row[0]: row[1:] for row in rows}
    assert len(shown) == 20
    assert shown["llama-2-70b"][:2] == ["2022-09", "stated"]
    assert shown["llama-2-70b"][4:6] == ["3.995", "+0.622"]  # as printed
    assert table.title.startswith("16 of 17 models have a higher rate for 2023 than for 2017 to 20")
    told = metadata(lines, site)
    assert told["window"] == ["2017-01-01", "2023-12-01"]  # half-open
    assert told["protocol"] == "published"
    assert told["reference"] == "Li et al. 2024, arXiv 2402.00861 (wikitext)"
    marks = lines.rows["cutoff_here"].drop_nulls().sort().to_list()
    assert marks == 4 * ["inferred"] + 5 * ["stated"]


def test_the_first_picture_is_of_published_models_while_own_ones_are_few(site: Site) -> None:
    figure = rises_figure(site)
    # Five intervals of nine are above 0, and the smallest q-value is 0.06.
    assert figure.title == (
        "None of 9 real models predicts text from after its cutoff worse by more than chance: "
        "the largest gap is 0.022 bits per byte (95 %: 0.003 to 0.041)"
    )
    told = metadata(figure, site)
    assert told["reference"] == "Li et al. 2024, arXiv 2402.00861 (wikitext)"
    rows = figure.rows.filter(pl.col("model") == "llama-65b")
    before, after = (
        rows.filter(pl.col("months_after_cutoff").is_between(*ages))["rise"].mean()
        for ages in ((-36, 0), (24, 36))
    )
    assert before == pytest.approx(0.0, abs=0.003)
    assert after > 0.04  # type: ignore[operator]
    with_frame = {"usermeta": {charts.FRAME: {"title": figure.title, "note": "", "foot": ""}}}
    spec = charts.with_data(figure.chart or {}, figure.drawn) | with_frame
    drawn = charts.draw(figure.name, spec)
    assert size_of(drawn.png) == (1200, 630)


def test_the_registry_holds_stated_cutoffs_against_measured_ones(site: Site) -> None:
    [page] = cutoffs.make_pages(site)
    [figure] = page.figures
    rows = {(row["model"], row["sources"]): row for row in figure.rows.to_dicts()}
    assert not any(name.startswith("control:") for name, _ in rows)
    for name in ("llama-7b", "llama-13b", "llama-30b", "llama-65b"):  # stated: 2020-12
        first = rows[name, "all sources"]
        assert str(first["measured_cutoff_low"]) in {"2020-11-01", "2020-12-01"}, name
        assert str(first["measured_cutoff_high"]) == "2020-12-01", name
    llama = rows["llama-2-70b", "all sources"]
    assert str(llama["stated_cutoff"]) == "2022-09-01"
    assert llama["is_contradicted"] in {None, False}
    assert all(row["told"] for row in rows.values())


def test_published_models_have_pages_but_no_rank(site: Site) -> None:
    pages = {page.title: page for page in model.make_pages(site)}
    assert {"own", "llama-7b", "gemma-7b"} <= pages.keys()
    assert "control:zlib" not in pages
    [figure] = pages["llama-7b"].figures
    assert figure.title.startswith("The losses place the cutoff in 2020-12")
    assert "published rates" in str(pages["llama-7b"].fields["cite"])
    [rises, _] = pages["llama-13b"].figures
    assert rises.title == "The losses rise twice: no single change explains them as well"
    [row] = rises.rows.to_dicts()
    first, second = (cell(row, column) for column in rises.columns[1:3])
    assert (first.text, first.interval) == ("2019-01", "2018-03 to 2019-08")
    assert (second.text, second.interval) == ("2020-11", "2020-11 to 2020-12")
    assert row["basis"] == "panel"
    assert figure.title.endswith("as inferred")  # by Li et al., from the paper
    assert "Dashed: the inferred cutoff." in figure.about
    [overview_page] = overview.make_pages(site)
    span = {"num_models": 17, "first_year": 2017, "last_year": 2023}
    assert overview_page.fields["published"] == [span]
    [board] = [figure for figure in overview_page.figures if figure.name == "board"]
    assert board.rows["model"].unique().to_list() == ["own"]
    assert not site.failures
