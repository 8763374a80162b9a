"""The source of the extra among the others: default runs, subsets, periods."""

from pathlib import Path

import pytest

from core.errors import UnknownName
from core.storage.store import Store
from crawlers.registry import list_sources, load_crawler
from simulator.server import Web
from tests.crawlers.request_kinds import kind_of
from tests.crawlers.test_periods import test_two_halves_are_the_month as check_two_halves
from tests.crawlers.test_subsets import test_a_subset_is_sealed_beside_its_source as check_subset
from tests.crawlers.test_subsets import web

__all__ = ["web"]


@pytest.mark.smoke
def test_default_runs_have_it() -> None:
    assert "arxiv" in list_sources()


@pytest.mark.parametrize(
    ("source", "category"),
    [("arxiv:stat", "stat.ML"), ("arxiv:math", "math.OC"), ("arxiv:q-fin", "q-fin.ST")],
)
def test_an_archive_is_a_subset(source: str, category: str, store: Store, web: Web) -> None:
    check_subset(source, "category", {category}, store, web)


def test_an_archive_has_no_subset() -> None:
    with pytest.raises(UnknownName, match="arxiv"):
        load_crawler("arxiv:q-fin:de")


def test_two_halves_are_the_month(web: Web, tmp_path: Path) -> None:
    """A text may be as of the end of the first half, and older than that of the month."""
    check_two_halves("arxiv", False, web, tmp_path)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("/src/2404.00001v1", "/src/{}"),
        (
            "https://export.arxiv.org/api/query?start=0&max_results=5",
            "/api/query?max_results&start",
        ),
        ("/oai?verb=GetRecord&identifier=", "/oai?identifier&verb"),
    ],
)
def test_kinds_of_requests_are_told_by_the_code(url: str, kind: str) -> None:
    assert kind_of(url, "arxiv") == kind
