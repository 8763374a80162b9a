"""Fixtures of the tests of crawlers."""

from tests.crawlers.conftest import clock, own

__all__ = ["clock", "own"]
