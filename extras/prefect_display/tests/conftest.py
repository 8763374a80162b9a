"""Fixtures of the tests of flows."""

from tests.conftest import prefect_server, prefect_template  # noqa: F401
from tests.seals import *  # noqa: F403
