"""The page about puzzles, of answers with tokens and of likelihoods."""

import shutil
from pathlib import Path

import pytest

from core.settings import Settings
from reports.site.build import write_site
from tests.reports.site.pages import Page
from tests.warehouse.test_views import VIEWS, build

pytestmark = pytest.mark.long


def test_tokens_and_likelihoods_are_on_the_page(settings: Settings, tmp_path: Path) -> None:
    case = tmp_path / "case"
    shutil.copytree(VIEWS / "scylla_tokens" / "four_items", case)
    shutil.copy(VIEWS / "scylla_likelihood" / "five_items" / "scylla_likelihoods.csv", case)
    build(case, settings)
    page = Page(Path(write_site(settings, only="puzzles")))
    assert {"puzzles-tokens", "puzzles-likelihoods"} <= page.ids
    shown = [cell.text for cell in page.cells]
    # Level 2: the mean of 40, 20 and 10 tokens.
    assert "23" in shown
    assert "mixed-2-likelihood-5" in shown
