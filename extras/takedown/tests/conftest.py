"""Fixtures of the tests of data roots, of cells and of commands."""

from tests.commands import home, own_environment, sites, tidemark, web
from tests.crawlers.hygiene.test_pipeline import seal
from tests.instruments.test_kept_tokens import ids, models

__all__ = ["home", "ids", "models", "own_environment", "seal", "sites", "tidemark", "web"]
