"""Fixtures of the tests of crawlers."""

from tests.crawlers.conftest import clock, own, site, web

__all__ = ["clock", "own", "site", "web"]
