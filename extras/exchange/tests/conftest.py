"""Published figures of twenty models, and fixtures of the tests of commands."""

import datetime as dt

import pytest

from core.month import Month, month_range
from core.settings import Settings
from tests.commands import *  # noqa: F403
from tests.conftest import once, shared_folder
from tests.losses import loss_row, publish_rows

CUTOFFS = [f"2022-{month:02}" for month in range(3, 13)]


@pytest.fixture(scope="session")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Nineteen models of the hub and a compressor, on 30 months of two sources."""
    home = shared_folder(tmp_path_factory) / "twenty"
    settings = Settings(
        home=str(home), report_url="https://figures.example.org", report_author="Ann Example"
    )
    names = [f"org-{number % 3}/Model_{number}.b" for number in range(19)]
    models = [
        {"name": name, "kind": "causal_lm", "revision": f"r{number}", "location": name,
         "cutoff": Month(CUTOFFS[number % 10]), "cutoff_provenance": "stated",
         "cutoff_precision": "month"}
        for number, name in enumerate(names)
    ]  # fmt: skip
    rows = []
    for index, month in enumerate(month_range(Month("2022-01"), Month("2024-06"))):
        for number, model in enumerate([*names, "control:zstd"]):
            is_later = model in names and month.first_day > dt.date(2022, 3 + number % 10, 1)
            for source in ("news", "c:ode"):
                nats = 10 + number / 4 + (index % 3) / 10 + 3 * is_later
                rows += [
                    loss_row(
                        model, source, month.first_day, f"{month}-{text}", nll_nats=nats + text
                    )
                    for text in range(2)
                ]
    once(home, lambda: publish_rows(settings, rows, *models))
    return settings
