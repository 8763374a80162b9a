"""Fixtures of the tests of models."""

from tests.models.conftest import *  # noqa: F403
from tests.models.conftest import _few_threads, _one_thread

__all__ = ["_few_threads", "_one_thread"]
