"""Fixtures of the tests of crawlers and of commands."""

from tests.commands import home, own_environment, tidemark
from tests.crawlers.conftest import clock, own, web
from tests.crawlers.sources.conftest import crawl, quick, site, whole

__all__ = [
    "clock",
    "crawl",
    "home",
    "own",
    "own_environment",
    "quick",
    "site",
    "tidemark",
    "web",
    "whole",
]
