import csv
import io
import json
import random
import re
from pathlib import Path

import duckdb
import pytest
import yaml

from core.plugins import list_extras
from core.settings import Settings
from reports.site import citation
from reports.site.build import _render, opened_site
from reports.site.pages import changes
from tests.reports.curves import HOSTILE_MODEL, HOSTILE_SOURCE
from tests.reports.site.pages import Page, read_pages

pytestmark = pytest.mark.long
NUM_CELLS = 500


@pytest.fixture(scope="module")
def pages(root: Path) -> dict[Path, Page]:
    return read_pages(root)


def test_the_query_of_each_figure_gives_its_numbers(root: Path, usual: Settings) -> None:
    figures = json.loads((root / "figures.json").read_text())
    assert len(figures) > 20
    with duckdb.connect(f"{usual.home}/warehouse.duckdb", read_only=True) as database:
        for figure in figures:
            stem = root / "figures" / figure["name"]
            rows = database.execute(stem.with_suffix(".sql").read_text()).fetchall()
            shown = json.loads(stem.with_suffix(".json").read_text())
            assert len(rows) == len(shown), figure
            table = list(csv.reader(io.StringIO(stem.with_suffix(".csv").read_text())))
            assert len(table) == len(rows) + 1, figure
            numbers = [_numbers(row) for row in rows]
            assert sorted(numbers) == sorted(_numbers(tuple(row.values())) for row in shown), figure


def _numbers(row: tuple[object, ...]) -> list[float]:
    kinds = (int, float)
    return [round(float(v), 9) for v in row if isinstance(v, kinds) and not isinstance(v, bool)]


def test_shown_numbers_are_those_of_the_data(pages: dict[Path, Page]) -> None:
    cells = [
        cell for page in pages.values() for cell in page.cells if cell.is_number and cell.value
    ]
    assert len(cells) > 100
    for cell in random.Random(0).sample(cells, min(NUM_CELLS, len(cells))):
        text, value = cell.text.replace("\u2212", "-").replace(",", ""), float(cell.value or "")
        if text == "< 0.001":
            assert value < 0.001
            continue
        half = 0.5 * 10.0 ** -len(text.partition(".")[2]) + 1e-9
        assert min(abs(float(text) - value), abs(float(text) - 100 * value)) <= half, cell


def test_no_link_is_dead(pages: dict[Path, Page]) -> None:
    for page in pages.values():
        for file, fragment in page.targets():
            assert file.exists(), (page.path, file)
            if fragment and file in pages:
                assert fragment.partition("?")[0] in pages[file].ids, (page.path, file, fragment)


def test_every_page_and_view_is_reached_in_three_clicks(
    root: Path, pages: dict[Path, Page], usual: Settings
) -> None:
    reached = {(root / "index.html").resolve()}
    for _ in range(3):
        reached |= {file for path in reached if path in pages for file, _ in pages[path].targets()}
    assert set(pages) <= reached
    with duckdb.connect(f"{usual.home}/warehouse.duckdb", read_only=True) as database:
        views = database.sql("from duckdb_views() where not internal")
        rows = views.select("schema_name, view_name").fetchall()
    of_schemas = [("main", "views", "")]
    if "papers" in list_extras():
        of_schemas.append(("papers", "views-papers", "papers."))
    for schema, page, prefix in of_schemas:
        names = {f"view-{prefix}{name}" for found, name in rows if found == schema}
        assert names
        assert names <= pages[(root / f"{page}.html").resolve()].ids


def test_names_from_outside_are_text(root: Path) -> None:
    for path in root.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert HOSTILE_MODEL not in page, path
        assert HOSTILE_SOURCE not in page, path
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in (root / "index.html").read_text()


def test_pages_are_light_and_say_what_they_are_made_of(root: Path) -> None:
    for path in root.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert len(page.encode()) <= 150_000, path
        own = "2024-01 to 2024-08 · 64 documents · protocol <code>default</code>" in page
        assert own == (path.name not in ("methods.html", "published.html", "puzzles.html")), path
        assert "By an author who is not stated · code: repository not stated" in page, path
        assert re.search(r"snapshot <code>[0-9a-f]{12}</code>", page), path


def test_author_code_and_citation_are_told_where_they_are_set(usual: Settings) -> None:
    told = {"report_author": "A & B", "report_code": "https://example.org/code",
            "report_url": "https://example.org/x/"}  # fmt: skip
    with opened_site(usual.model_copy(update=told)) as site:
        [page] = changes.make_pages(site)
        html = _render(site, page, {})
        bibtex, cited = citation.site_bibtex(site), yaml.safe_load(citation.cff(site))
    assert 'By A &amp; B · code: <a href="https://example.org/code"' in html
    assert "author = {{A \\& B}}" in bibtex
    assert cited["authors"] == [{"name": "A & B"}]
    assert cited["repository-code"] == "https://example.org/code"
    assert cited["url"] == "https://example.org/x/"
    assert 'og:title" content="What changed"' in html


def test_metadata_says_what_each_column_is(root: Path) -> None:
    units = {}
    for figure in json.loads((root / "figures.json").read_text()):
        told = json.loads((root / "figures" / f"{figure['name']}.metadata.json").read_text())
        unknown = [each for each in told["columns"] if not each["is"] and "header" not in each]
        assert not unknown, figure
        units |= {(figure["name"], each["name"]): each["unit"] for each in told["columns"]}
        [row, *_] = json.loads((root / "figures" / f"{figure['name']}.json").read_text()) or [{}]
        assert set(row) <= {each["name"] for each in told["columns"]}
    assert units["over-time", "rise"] == "bits per byte"  # of a chart without a table
    assert units["board", "bits_per_byte_low"] == "bits per byte"
    assert units["data-coverage", "num_months"] == "months"


def test_metadata_has_units_and_provenance(root: Path) -> None:
    found = json.loads((root / "figures" / "board.metadata.json").read_text())
    assert found["formulas"]["bits_per_byte"].startswith("unweighted mean over sources of the ")
    assert "less that of other models" in found["formulas"]["adjusted_gap"]
    level = next(column for column in found["columns"] if column["name"] == "bits_per_byte")
    assert level["unit"] == "bits per byte"
    assert level["low"] == "bits_per_byte_low"
    assert found["window"] == ["2024-01-01", "2024-09-01"]  # half-open
    assert (found["protocol"], found["num_documents"]) == ("default", 64)
    assert "measured_at" in found
    assert re.fullmatch(r"[0-9a-f]{64}", found["snapshot_sha256"])
    assert found["sql"].strip() in (root / "figures" / "board.sql").read_text()
