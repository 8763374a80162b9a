"""Rules and fixtures for tests of extras: those of ``tests/conftest.py``."""

from tests.conftest import (
    clean_environment,
    hub,
    one_fresh_database,
    only_loopback,
    settings,
    shared,
    store,
)

__all__ = [
    "clean_environment",
    "hub",
    "one_fresh_database",
    "only_loopback",
    "settings",
    "shared",
    "store",
]
