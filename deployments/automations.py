"""Automations of a Prefect server: mark killed runs as crashed, and replace them."""

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


def read_automations(restarted: Sequence[UUID]) -> list[AutomationCore]:
    """Return the automations that every server has.

    ``restarted`` are the ids of the deployments whose crashed and lost runs are replaced.
    """
    deployments = json.dumps([f"prefect.deployment.{each}" for each in restarted])
    return fill_in(AUTOMATIONS_YAML, restarted=deployments)


def fill_in(path: Path, **values: object) -> list[AutomationCore]:
    """Return the automations of a YAML file, with values in place of the words after ``$``."""
    text = Template(path.read_text(encoding="utf-8")).substitute(values)
    return [AutomationCore.model_validate(each) for each in yaml.safe_load(text)["automations"]]
