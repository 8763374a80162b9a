"""Fixtures of the tests of the command line."""

from tests.commands import *  # noqa: F403
