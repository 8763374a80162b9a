"""Rates that others have published: a page, pages of their models, and no place on the board."""

from collections.abc import Iterator
from typing import Any

import pytest

from core.settings import Settings
from instruments.landing import land_shipped_rates
from reports.site import answer_findings
from reports.site.build import opened_site
from reports.site.context import Site
from reports.site.figure import Figure, Page, cell
from reports.site.files import metadata
from reports.site.pages import model, overview, published
from tests.reports.curves import level, losses
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

LI = "Li et al. 2024, arXiv 2402.00861 (wikitext)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = Settings(home=str(tmp_path_factory.mktemp("published")))
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(level("own", "news", 1.0)), "figures")
    land_shipped_rates(settings)
    publish(settings)
    with opened_site(settings) as site:
        yield site


def figures_of(pages: Iterator[Page]) -> dict[str, Figure]:
    return {figure.name: figure for page in pages for figure in page.figures}


@pytest.mark.long
def test_the_page_has_what_table_3_prints(site: Site) -> None:
    figures = figures_of(published.make_pages(site))
    assert not site.failures
    table = figures["published-gaps"]
    shown = {
        row["model"]: [cell(row, column).text for column in table.columns]
        for row in table.rows.to_dicts()
    }
    assert len(shown) == 20
    assert shown["llama-2-70b"][1:3] == ["2022-09", "stated"]
    assert shown["llama-2-70b"][5:7] == ["3.995", "+0.622"]  # as printed
    assert table.title.startswith("16 of 17 models have a higher rate for 2023 than for 2017 to 20")
    for figure in (table, figures["published-rates"]):
        told = metadata(figure, site)
        assert told["window"] == ["2017-01-01", "2023-12-01"]  # half-open
        assert (told["protocol"], told["reference"]) == ("published", LI)
    marks = figures["published-rates"].rows.drop_nulls("cutoff_here")
    assert dict(marks["cutoff_here"].value_counts().iter_rows()) == {"stated": 5, "inferred": 4}


@pytest.mark.long
def test_published_models_have_pages_but_no_rank(site: Site) -> None:
    pages = {page.title: page for page in model.make_pages(site)}
    assert {"own", "llama-7b", "gemma-7b"} <= pages.keys()
    assert "control:zlib" not in pages
    [figure] = pages["llama-7b"].figures
    assert figure.title.startswith("The losses place the cutoff in 2020-11 to ")
    assert metadata(figure, site)["protocol"] == "published"
    assert "published rates" in str(pages["llama-7b"].fields["cite"])
    [first] = overview.make_pages(site)
    span = {"num_models": 17, "first_year": 2017, "last_year": 2023}
    assert first.fields["published"] == [span]
    assert figures_of(iter([first]))["board"].rows["model"].to_list() == ["own"]


def test_findings_count_and_claim_no_effect() -> None:
    sizes: list[dict[str, Any]] = [
        {"model": f"m-{size}", "family": "m", "parameters": size, "change": change}
        for size, change in ((1, 0.1), (7, 0.3), (70, 0.2))
    ]
    title = answer_findings.growth_finding([*sizes, {**sizes[0], "family": None}])
    assert title == "The larger of two sizes of a family lost more on newer text in 1 of 2 pairs"
    assert answer_findings.growth_finding(sizes[:1]) == "Rates of 1 models, as published"
    control = {"model": "control:zlib", "change": -0.1}
    title = answer_findings.published_gaps_finding([*sizes, control], "2022", 2023)
    assert title.endswith("for 2023 than for 2022; so have 0 of 1 compressors")
