"""The deployments of sources by half-month and by week."""

import datetime as dt

import pytest

from core.errors import UsageError
from deployments.prefect_yaml import is_ours, read_deployments
from instruments.planning import last_period
from tests.tiers import needs_extra

DEPLOYMENTS = read_deployments()


@pytest.mark.smoke
@needs_extra("arxiv")
def test_half_months_and_weeks_are_scheduled_where_asked() -> None:
    asked = ["arxiv:half-month", "hackernews:week", "wikipedia_new:de:half-month"]
    half, week = read_deployments(period_sources=asked)[len(DEPLOYMENTS) :]
    assert (half.full_name, week.full_name) == ("monthly/half-month", "monthly/week")
    assert half.parameters == {"sources": ["arxiv:half-month", "wikipedia_new:de:half-month"]}
    assert week.parameters == {"sources": ["hackernews:week"]}
    assert is_ours(half.full_name, half.entrypoint, half.parameters)
    [monthly] = [each for each in DEPLOYMENTS if each.name == "monthly"]
    assert half.work_pool == week.work_pool == monthly.work_pool
    assert half.pull_steps == monthly.pull_steps
    # Each half-month is run once: as soon as arXiv lists it, a week after its end.
    [schedule] = half.schedules
    days = [int(day) for day in schedule.cron.split()[2].split(",")]
    starts = [dt.datetime(2024, month, day, 3, tzinfo=dt.UTC) for month in (3, 4) for day in days]
    periods = [str(last_period(half.parameters["sources"], start)) for start in starts]
    assert periods == ["2024-02b", "2024-03a", "2024-03b", "2024-04a"]


@pytest.mark.parametrize(
    "name",
    [
        "hackernews",
        pytest.param("wikipedia_monitored:week", marks=needs_extra("more_sources")),
    ],
)
def test_a_source_without_such_periods_is_not_scheduled(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is a source of months|no source {name}"):
        read_deployments(period_sources=[name])
