from typing import Any

import pytest

from simulator.server import serve_sites
from tests.crawlers.questions.scene import WORLD, Outcome, crawl_source


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Any:
    return request.module.Site(WORLD)


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Outcome]:
    """February and March of the source that a module tests, undisturbed; tests only read them."""
    source = request.module.__name__.partition("test_")[2]
    with serve_sites([request.module.Site(WORLD)]) as web:
        return crawl_source(source, web, tmp_path_factory.mktemp("outcomes"))
