"""Fixtures of the tests of crawlers of questions, and of commands."""

from tests.commands import home, sites, tidemark
from tests.crawlers.conftest import clock, own, web
from tests.crawlers.questions.conftest import outcomes, site

__all__ = ["clock", "home", "outcomes", "own", "site", "sites", "tidemark", "web"]
