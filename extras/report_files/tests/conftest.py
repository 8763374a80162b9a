"""Fixtures of the tests of the site and of commands."""

from tests.commands import home, own_environment, tidemark
from tests.reports.conftest import publish_figures, usual
from tests.reports.site.conftest import mixed

__all__ = ["home", "mixed", "own_environment", "publish_figures", "tidemark", "usual"]
