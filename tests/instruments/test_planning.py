import pytest

from core.errors import FutureMonth, UnknownName, UsageError
from core.month import Month
from core.settings import Settings
from crawlers.registry import list_sources, load_crawler
from instruments.planning import check_request, plan_crawl

MONTHS = [Month("2024-01"), Month("2024-02")]


def test_defaults_are_filled_in_and_order_is_kept(settings: Settings) -> None:
    request = check_request(MONTHS, None, None, settings)
    assert request.months == tuple(MONTHS)
    begun = [name for name in list_sources() if load_crawler(name).INFO.lacks(MONTHS[-1]) is None]
    assert request.sources == tuple(begun)
    assert request.models == settings.models
    request = check_request(MONTHS, ["wikipedia_new", "hackernews"], ["control:xz"], settings)
    assert request.sources == ("wikipedia_new", "hackernews")
    assert request.models == ("control:xz",)


def test_the_present_month_is_not_over(settings: Settings) -> None:
    last = Month.last_complete()
    check_request([last], None, None, settings)
    with pytest.raises(FutureMonth, match=f"{last + 1} is not over yet.* is {last}"):
        check_request([last, last + 1], None, None, settings)


def test_months_that_a_source_does_not_have_are_left_out(settings: Settings) -> None:
    months = [Month("2016-11"), Month("2016-12"), Month("2017-01")]
    plan = plan_crawl(["hackernews"], months, settings)
    assert plan.partitions == [("hackernews", Month("2017-01"))]
    assert plan.lacks == {
        months[0]: ["hackernews 2016-11: hackernews begins with 2017-01"],
        months[1]: ["hackernews 2016-12: hackernews begins with 2017-01"],
        months[2]: [],
    }
    request = check_request(months, ["hackernews"], None, settings)
    assert (request.partitions(), request.left_out) == (plan.partitions, ())
    request = check_request(months[:2], None, None, settings)
    assert f"hackernews {months[1]}: hackernews begins with 2017-01" in request.left_out
    assert not [why for why in request.left_out if str(months[0]) in why], "only the last month"
    with pytest.raises(UsageError, match="hackernews 2016-11: hackernews begins with"):
        plan_crawl(["hackernews"], months[:2], settings)
    assert plan_crawl(None, months[:1], settings).partitions == []


def test_unknown_names_are_refused(settings: Settings) -> None:
    with pytest.raises(UnknownName, match="unknown source 'nope'; known: .*hackernews"):
        check_request(MONTHS, ["hackernews", "nope"], None, settings)
    with pytest.raises(UnknownName, match="unknown model 'nope'"):
        check_request(MONTHS, None, ["control:zstd", "nope"], settings)
    misspelt = settings.model_copy(update={"models": ("nope",)})
    with pytest.raises(UnknownName, match="unknown model 'nope'"):
        check_request(MONTHS, None, None, misspelt)
