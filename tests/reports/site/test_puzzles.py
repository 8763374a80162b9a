"""The page about puzzles, of answers with tokens."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from core.settings import Settings
from reports.site.build import write_site
from tests.reports.site.pages import Page
from tests.warehouse.test_views import VIEWS, build

pytestmark = pytest.mark.long


def test_tokens_are_on_the_page(settings: Settings, tmp_path: Path) -> None:
    case = tmp_path / "case"
    shutil.copytree(VIEWS / "scylla_tokens" / "four_items", case)
    build(case, settings)
    page = Page(Path(write_site(settings, only="puzzles")))
    assert "puzzles-tokens" in page.ids
    shown = [cell.text for cell in page.cells]
    # Level 2: the mean of 40, 20 and 10 tokens.
    assert "23" in shown


def test_each_level_has_an_interval_or_a_reason(settings: Settings, tmp_path: Path) -> None:
    case = tmp_path / "case"
    shutil.copytree(VIEWS / "scylla_scores_details" / "levels", case)
    build(case, settings)
    page = Path(write_site(settings, only="puzzles"))
    rows = pq.read_table(page.parent / "figures/puzzles.parquet").to_pylist()
    assert rows
    for row in rows:
        for name in ("score", *(f"level_{level}" for level in range(1, 6))):
            bounds = (row[f"{name}_low"], row[f"{name}_high"])
            assert (None in (row[name], *bounds)) == (row[f"{name}_reason"] is not None), name
