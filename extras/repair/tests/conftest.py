"""Fixtures of the tests of commands."""

from tests.commands import *  # noqa: F403
from tests.seals import *  # noqa: F403
