"""Fixtures of the tests of the warehouse, and one that lands answers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from core.settings import Settings
from extras.imported_results.tests.lander import lander
from tests.warehouse.conftest import ask, dump, kept_open, peek

__all__ = ["ask", "dump", "kept_open", "peek"]


@pytest.fixture
def give(settings: Settings, tmp_path: Path) -> Callable[..., int]:
    return lander(settings, tmp_path)
