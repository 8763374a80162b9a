"""Fixtures of the tests of the warehouse and of commands."""

from tests.commands import home, own_environment, sites, tidemark, web
from tests.warehouse.conftest import ask, dump, peek

__all__ = ["ask", "dump", "home", "own_environment", "peek", "sites", "tidemark", "web"]
