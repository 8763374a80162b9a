"""Each source's true site, asked for a few items: does it answer as the simulator does?"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from core.errors import UsageError
from core.settings import Settings
from crawlers.contract import SourceInfo, list_sources, load_crawler
from flows.source_check import check_source, month_to_ask


def require_network(info: SourceInfo) -> None:
    """Skip where a site of the source cannot be reached at all."""
    for url in info.sites.values():
        try:
            socket.create_connection((str(urlsplit(url).hostname), 443), timeout=10).close()
        except OSError as error:
            pytest.skip(f"no network: {url}: {error}")


@pytest.mark.live
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("source", list_sources())
def test_the_true_site_answers_in_the_shape_of_the_simulated_one(
    source: str, settings: Settings
) -> None:
    info = load_crawler(source).INFO
    require_network(info)
    try:
        month_to_ask(info)
    except UsageError as error:
        pytest.skip(str(error))
    polite = settings.model_copy(update={"request_interval_s": None})
    _, wrong = check_source(source, polite)
    assert wrong == []
