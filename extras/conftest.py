"""Rules and fixtures for tests of extras: those of ``tests/conftest.py``."""

from pathlib import Path

import pytest

from tests.conftest import (
    clean_environment,
    hub,
    one_fresh_database,
    only_loopback,
    settings,
    shared,
    store,
)

__all__ = [
    "clean_environment",
    "hub",
    "one_fresh_database",
    "only_loopback",
    "settings",
    "shared",
    "store",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of extras, so that `make test` runs only the smoke tests of each extra."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "smoke" not in item.keywords:
            item.add_marker("extra")
