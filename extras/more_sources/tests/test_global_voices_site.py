"""The simulated WordPress refuses what the real one refuses, in its words."""

import pytest

from extras.more_sources.simulator.global_voices import PATH, Site
from tests.simulator.test_sites import body_of, get


@pytest.mark.parametrize(
    "parameter",
    ["per_page=101", "per_page=0", "page=0", "page=x", "after=2024-02-01", "order=up"],
)
def test_an_invalid_parameter_is_named(parameter: str) -> None:
    response = get(Site, f"{PATH}?order=asc&{parameter}")
    assert response.status == 400
    assert f"Invalid parameter(s): {parameter.split('=')[0]}" in body_of(response).decode()


def test_a_page_after_the_last_is_refused() -> None:
    response = get(Site, f"{PATH}?per_page=100&page=2&order=asc")
    assert response.status == 400
    assert "rest_post_invalid_page_number" in body_of(response).decode()
