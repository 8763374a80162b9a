"""Fixtures of the tests of the command line, of sealed texts, and of the warehouse."""

from tests.commands import *  # noqa: F403
from tests.seals import *  # noqa: F403
from tests.warehouse.conftest import peek

__all__ = ["peek"]
