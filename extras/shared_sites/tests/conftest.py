"""Fixtures of Prefect servers, and of settings."""

from tests.conftest import prefect_background, prefect_server, prefect_template  # noqa: F401
