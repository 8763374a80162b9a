"""Fixtures of the tests of data roots and of commands."""

from tests.commands import *  # noqa: F403
from tests.seals import *  # noqa: F403
