"""Automations of a Prefect server: mark killed runs as crashed, replace them, send alarms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from string import Template
from uuid import UUID

import yaml
from prefect.events.schemas.automations import AutomationCore

AUTOMATIONS_YAML = Path(__file__).with_name("automations.yaml")
PREFIX = "tidemark: "  # prefix of the names of all automations of `tidemark deploy`


def read_automations(
    restarted: Sequence[UUID], monthly: UUID, block: UUID | None = None
) -> list[AutomationCore]:
    """Return the automations of automations.yaml.

    Args:
        restarted: ids of the deployments whose crashed and lost runs are replaced.
        monthly: id of the deployment whose late runs are told of.
        block: id of the notification block for alarms. With None, there are no alarms.
    """
    template = Template(AUTOMATIONS_YAML.read_text(encoding="utf-8"))
    deployments = json.dumps([f"prefect.deployment.{each}" for each in restarted])
    text = template.substitute(restarted=deployments, monthly=monthly, block=block)
    file = yaml.safe_load(text)
    wanted = file["always"]
    if block is not None:
        wanted += file["alarms"]
    return [AutomationCore.model_validate(each) for each in wanted]
