from collections.abc import Iterator
from typing import Any

import pytest

from simulator.server import Web, serve_sites
from tests.crawlers.questions.scene import WORLD


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Any:
    return request.module.Site(WORLD)


@pytest.fixture
def web(site: Any) -> Iterator[Web]:
    with serve_sites([site]) as running:
        yield running
