"""Fixtures of the tests of crawlers."""

from tests.crawlers.conftest import clock, own, web
from tests.crawlers.sources.conftest import crawl, quick, site, whole

__all__ = ["clock", "crawl", "own", "quick", "site", "web", "whole"]
