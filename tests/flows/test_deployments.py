"""Every flow can be imported, and every deployment points at one."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect import Flow

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "deployments" / "prefect.yaml").read_text(encoding="utf-8")
)["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda d: str(d["name"]))
def test_a_deployment_points_at_a_flow_and_says_what_it_does(deployment: dict[str, Any]) -> None:
    path, name = deployment["entrypoint"].split(":")
    assert (ROOT / path).exists()
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    assert isinstance(getattr(module, name), Flow)
    assert deployment["description"]


def test_the_monthly_run_is_scheduled_in_utc_after_the_month_is_over() -> None:
    (monthly,) = [d for d in DEPLOYMENTS if d["name"] == "monthly"]
    (schedule,) = monthly["schedules"]
    assert schedule == {"cron": "0 3 3 * *", "timezone": "UTC"}


def test_the_backfill_is_there_to_be_started_by_hand() -> None:
    (backfill,) = [d for d in DEPLOYMENTS if d["name"] == "backfill"]
    assert backfill["schedules"] == []
