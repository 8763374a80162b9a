"""Fixtures of a Prefect server."""

from tests.conftest import prefect_api, prefect_background, prefect_template  # noqa: F401
