"""The sources of the extra among the others: default runs, periods, stand-ins."""

from pathlib import Path

import pytest

from core.errors import UnknownName, UsageError
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.source_list import list_source_facts
from crawlers.registry import list_sources, load_crawler
from simulator.server import Web
from tests.crawlers.test_periods import test_two_halves_are_the_month as check_two_halves
from tests.crawlers.test_periods import web
from tests.crawlers.test_subsets import test_a_subset_is_sealed_beside_its_source as check_subset

__all__ = ["web"]

WHOLE_MONTHS = ("edgar", "federal_register", "scp_tales", "wikipedia_monitored")
OTHERS = ("biorxiv", "global_voices", "govuk", "stackexchange", "wikinews", "wikipedia_changes")


@pytest.mark.smoke
def test_default_runs_have_them() -> None:
    assert {*OTHERS, *WHOLE_MONTHS} <= {*list_sources()}


@pytest.mark.smoke
@pytest.mark.parametrize("name", WHOLE_MONTHS)
def test_those_that_need_whole_months_say_why(name: str) -> None:
    why = load_crawler(name).INFO.whole_months
    assert why
    with pytest.raises(UsageError, match=f"no source {name}:week, only {name}: {why}"):
        load_crawler(f"{name}:week")


@pytest.mark.parametrize(
    ("source", "is_same_text"),
    [
        ("biorxiv", True),
        ("govuk", True),
        ("stackexchange:math", False),
        ("global_voices", True),
        ("wikinews", True),
    ],
)
def test_two_halves_are_the_month(
    source: str, is_same_text: bool, web: Web, tmp_path: Path
) -> None:
    check_two_halves(source, is_same_text, web, tmp_path)


def test_a_site_of_stack_exchange_is_a_subset(store: Store, web: Web) -> None:
    check_subset("stackexchange:math", "category", {"math"}, store, web)
    with pytest.raises(UnknownName, match="stackexchange"):
        load_crawler("stackexchange:a/b")


@pytest.mark.smoke
def test_closed_sources_name_them_as_stand_ins(settings: Settings) -> None:
    facts = {each.source: each for each in list_source_facts(settings)}
    assert facts["edgar"].stands_in_for == "yahoo_finance"
    for closed in {"ao3", "wattpad"} & facts.keys():
        assert facts[closed].stand_ins == ["scp_tales"]
    if "reddit" in facts:
        assert facts["reddit"].stand_ins == ["hackernews", "stackexchange"]
