"""What this room's tests share: texts to score, and a Prefect API where a flow runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prefect.testing.utilities import prefect_test_harness


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[None]:
    """A temporary API; it takes a while to start, so only who runs a flow asks for it."""
    with prefect_test_harness(server_startup_timeout=120):
        yield
