from typing import Any

import pytest

from tests.crawlers.questions.scene import WORLD


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Any:
    return request.module.Site(WORLD)
