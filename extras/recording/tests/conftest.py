"""Fixtures of the tests of commands."""

from tests.commands import home, own_environment, sites, tidemark, web

__all__ = ["home", "own_environment", "sites", "tidemark", "web"]
