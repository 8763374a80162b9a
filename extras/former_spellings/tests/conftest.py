"""Fixtures of the tests of commands."""

from tests.commands import *  # noqa: F403
