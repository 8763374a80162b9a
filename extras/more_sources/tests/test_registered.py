"""The sources of the extra among the others: default runs, periods, stand-ins."""

from pathlib import Path

import pytest

from core.errors import UsageError
from core.settings import Settings
from crawlers.crawling.source_list import list_source_facts
from crawlers.registry import list_sources, load_crawler
from simulator.server import Web
from tests.crawlers.test_periods import test_two_halves_are_the_month as check_two_halves
from tests.crawlers.test_periods import web

__all__ = ["web"]

WHOLE_MONTHS = ("edgar", "federal_register", "scp_tales")


@pytest.mark.smoke
def test_default_runs_have_them() -> None:
    assert {"biorxiv", *WHOLE_MONTHS} <= {*list_sources()}


@pytest.mark.smoke
@pytest.mark.parametrize("name", WHOLE_MONTHS)
def test_those_that_need_whole_months_say_why(name: str) -> None:
    why = load_crawler(name).INFO.whole_months
    assert why
    with pytest.raises(UsageError, match=f"no source {name}:week, only {name}: {why}"):
        load_crawler(f"{name}:week")


def test_two_halves_of_preprints_are_the_month(web: Web, tmp_path: Path) -> None:
    check_two_halves("biorxiv", True, web, tmp_path)


@pytest.mark.smoke
def test_closed_sources_name_them_as_stand_ins(settings: Settings) -> None:
    facts = {each.source: each for each in list_source_facts(settings)}
    assert facts["edgar"].stands_in_for == "yahoo_finance"
    for closed in {"ao3", "wattpad"} & facts.keys():
        assert facts[closed].stand_ins == ["scp_tales"]
