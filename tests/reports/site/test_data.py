"""The page of data: what was dropped, releases, months held back, and downloads."""

import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from core.settings import Settings
from reports.site.build import write_site
from reports.site.collected import read_outcomes
from reports.site.figure import Column, cell
from reports.site.findings import cells_finding, contexts_finding
from reports.site.pictures.trends import trends_of
from tests.reports.curves import step
from tests.reports.site.pages import read_pages
from tests.tiers import needs_extra
from warehouse.database.schema import read_sql, read_view

MANIFEST = {
    "source": "code", "month": "2024-01", "digest": "0" * 64, "num_documents": 20, "num_bytes": 1,
    "files": [], "kept": 20, "dropped": {"too_short": 4, "=licence": 1}, "failed": {"http_404": 2},
}  # fmt: skip


def _seal(settings: Settings, month: str, **changes: object) -> None:
    path = Path(settings.home) / f"corpus/source=code/month={month}/manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(MANIFEST | {"month": month} | changes))


@pytest.fixture
def crawled(usual: Settings, tmp_path: Path) -> Settings:
    """The snapshot of the usual figures, without a corpus."""
    shutil.copy(Path(usual.home) / "warehouse.duckdb", tmp_path)
    return Settings(home=str(tmp_path))


@pytest.mark.long
def test_what_was_dropped_is_told_with_reasons(crawled: Settings) -> None:
    settings = crawled
    _seal(settings, "2024-01")
    _seal(settings, "2024-02", dropped={"too_short": 10})
    root = Path(write_site(settings, "data")).parent
    write_site(settings, "sources/code")
    pages = read_pages(root)
    title = "19 of 59 items are not in the corpus, 14 for the reason: too short"
    for path in ("data.html", "sources/code.html"):
        assert title in pages[(root / path).resolve()].titles, path
    rows = pl.read_parquet(root / "figures" / "source-code-collected.parquet").rows()
    assert rows == [
        ("code", "kept", 40, 40 / 59, 2, False),  # not simulated
        ("code", "too short", 14, 14 / 59, 2, False),
        ("code", "failed: http 404", 4, 4 / 59, 2, False),
        ("code", "=licence", 1, 1 / 59, 1, False),
    ]
    assert "'=licence" in (root / "figures" / "data-collected.csv").read_text()


@pytest.mark.long
def test_a_damaged_manifest_does_not_stop_the_site(crawled: Settings) -> None:
    _seal(crawled, "2024-01", digest=None, files=7)
    page = Path(write_site(crawled, "data"))
    assert "is not a manifest of tidemark" in page.read_text()


def test_runs_of_cells_are_there_missing_stale_or_held_back() -> None:
    with duckdb.connect() as database:
        database.execute(read_sql("macros", "source_period") + ";create schema internal")
        database.execute("""
            create table internal.landed_partitions as select 'news' as source, month,
                'new' as partition_digest, 2 as partition_version
            from range(date '2024-01-01', date '2024-06-01', interval 1 month) as r (month);
            create table internal.landed_cells as select model, source, month,
                'default' as protocol,
                if(month < '2024-03-01' and model = 'b', 'old', 'new') as partition_digest,
                if(month < '2024-03-01' and model = 'b', 1, 2) as partition_version,
                1 as num_documents, 0 as num_unmeasured
            from internal.landed_partitions, (values ('a'), ('b')) as m (model)
            where model = 'a' or month <> '2024-04-01';
            create table monthly_loss as select *,
                if(model = 'a' and month = '2024-05-01', null, 1.0) as bits_per_byte
            from internal.landed_cells;
            create table internal.suspect_cells as select model, source, protocol, month,
                now() as drifted_at, 0.1 as drift
            from internal.landed_cells where false
        """)
        database.execute(read_view("scored_cells"))
        sql = (files("reports.site") / "queries" / "data_cells.sql").read_text()
        days = [{"source": "news", "month": f"2024-0{month}-01"} for month in (5, 6)]
        held = f"'{json.dumps(days)}'"
        found = database.sql(sql.replace("$protocol", "'default'").replace("$held", held)).pl()
    assert found.select("state", "num_months", "models", "num_cells").rows() == [
        ("stale", 2, "b", 2), ("missing", 1, "b", 1), ("without a loss", 1, "a", 1),
        ("held back", 1, "a, b", 2),
        ("there", 4, "a", 4), ("there", 1, "b", 1), ("there", 1, "b", 1),
    ]  # fmt: skip
    assert cells_finding(found.to_dicts()) == (
        "Of 12 cells, 2 held back, 1 missing, 2 stale, 1 without a loss"
    )
    whole = found.filter(pl.col("state") == "there").to_dicts()
    assert cells_finding(whole) == "Every model is scored on every month of every source"


def test_contexts_are_compared_where_there_are_several() -> None:
    names = ("model", "context", "bits_per_byte")
    rows = pl.DataFrame([("a", 512, 1.0), ("a", 2048, 0.9), ("b", 512, 0.8)], names, orient="row")
    same = ("source", "protocol", "stride", "seconds_per_megabyte", "peak_memory_bytes")
    with duckdb.connect() as database:
        planted = rows.with_columns(num_cells=3, **dict.fromkeys(same, 1))
        database.register("context_comparison", planted)
        sql = (files("reports.site") / "queries" / "compare_contexts.sql").read_text()
        found = database.sql(sql).pl().to_dicts()
    assert contexts_finding(found) == "The longest context has the lowest loss in 1 of 1 curves"


@pytest.mark.slow
def test_releases_and_months_held_back_are_linked(publish_figures: Any) -> None:
    settings = publish_figures(step("a", "news", "2024-03", 1.0, 1.5, 7), {"a": "2024-03"})
    home = Path(settings.home)
    for month in ("2024-05", "2024-06"):
        folder = home / "releases" / month
        folder.mkdir(parents=True)
        names = ("warehouse.duckdb", "partitions.jsonl", "cells.jsonl", "CITATION.cff")
        for name in names:
            (folder / name).touch()
        sums = "".join(f"{name[0] * 4}{month}  {name}\n" for name in names)
        (folder / "SHA256SUMS").write_text(sums)
    held = home / "corpus/source=news/month=2024-08/held/manifest.json"
    held.parent.mkdir(parents=True)
    held.write_text("{}")
    root = Path(write_site(settings)).parent
    text = (root / "data.html").read_text()
    assert text.index("wwww2024-06") < text.index("wwww2024-05")
    assert "Held back, since a check failed: news/2024-08" in text
    assert "Of 8 cells, 1 held back" in text
    publish_figures(step("a", "news", "2024-03", 1.0, 1.5, 8))
    write_site(settings)  # the former site is kept, with links to the same releases
    for path in ("data.html", "months/2024-07/data.html"):
        targets = [file for file, _ in read_pages(root)[(root / path).resolve()].targets()]
        assert len([file for file in targets if "releases" in file.parts]) == 10, path
        assert all(file.exists() for file in targets), path


@pytest.mark.long
def test_each_view_has_its_query_and_each_figure_a_parquet_file(root: Path) -> None:
    assert "create" in (root / "views" / "headline.sql").read_text().lower()
    for figure in json.loads((root / "figures.json").read_text()):
        stem = root / "figures" / figure["name"]
        rows = json.loads(stem.with_suffix(".json").read_text())
        assert pl.read_parquet(stem.with_suffix(".parquet")).height == len(rows), figure["name"]


@needs_extra("papers")
def test_views_of_papers_have_a_page_of_their_own(root: Path) -> None:
    assert "<dt>pearson_low, pearson_high<dd>ends of" in (root / "views-papers.html").read_text()


def test_no_crawls_have_no_outcomes(settings: Settings) -> None:
    from core.storage.store import Store

    assert read_outcomes(Store(settings.home), ["news"]) == "[]"


def test_lines_of_the_board_share_their_scales() -> None:
    rows = pl.DataFrame({
        "model": ["a"] * 3 + ["b"] * 3 + ["c"],
        "month": [1, 2, 3] * 2 + [1],
        "rise": [0.0, 0.0, 1.0, 0.0, 0.0, 0.5, None],
    })  # fmt: skip
    trends = trends_of(rows)
    assert set(trends) == {"a", "b"}  # one month is no line
    assert trends["a"].path == "M0 19l30 0 30-18"
    assert trends["b"].path == "M0 19l30 0 30-9"
    column = Column("trend", "over time", draw=lambda row: trends.get(row["model"]))
    assert (cell({"model": "b"}, column).value, cell({"model": "c"}, column).text) == ("0.5", "–")


def test_long_lines_are_short() -> None:
    rows = pl.DataFrame({"model": "a", "month": range(84), "rise": [n / 84 for n in range(84)]})
    assert trends_of(rows)["a"].path.count("-") == 12
    assert trends_of(rows.with_columns(rise=0.0))["a"].path.startswith("M0 19l5 0 5 0")
