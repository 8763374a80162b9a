"""Simulated GOV.UK refuses what the real one refuses, in its words."""

import pytest

from extras.more_sources.simulator import govuk
from tests.simulator.test_sites import answer, check_refused

SEARCH = "/api/search.json"
REFUSED = [
    f"{SEARCH}?{each}"
    for each in (f"count={govuk.MAX_COUNT + 1}", "count=ten", "start=-1", "start=1000000",
                 "page=2", "filter_public_timestamp=from:yesterday",
                 "filter_public_timestamp=2024-02")
]  # fmt: skip


@pytest.mark.parametrize("target", REFUSED)
def test_what_the_real_site_refuses_is_refused(target: str) -> None:
    check_refused(govuk.Site, 422, "error", target)


def test_a_day_without_a_time_ends_at_its_last_minute() -> None:
    """Items of a month's last minute are listed only if a request includes the next day."""
    whole, day = (
        answer(govuk.Site, SEARCH, filter_public_timestamp=f"from:2023-02-28,to:{end}")
        for end in ("2023-03-01", "2023-02-28")
    )
    assert whole["total"] > day["total"]
