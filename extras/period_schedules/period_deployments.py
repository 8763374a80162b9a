"""The deployments ``monthly/half-month`` and ``monthly/week``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import yaml

from core.errors import UsageError
from core.month import Month
from core.periods import kind_of
from crawlers.registry import load_crawler
from deployments.prefect_yaml import Deployment

TEMPLATES_YAML = Path(__file__).with_name("templates.yaml")


def list_deployments(sources: Sequence[str]) -> list[Deployment]:
    """Return a deployment for each kind of period of the sources.

    Raises:
        UnknownName: there is no such source.
        UsageError: a source is not of half-months or weeks.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        load_crawler(source)
        if kind_of(source) is Month:
            raise UsageError(
                f"TIDEMARK_PERIOD_SOURCES: {source} is a source of months, which the monthly run "
                f"crawls; expected names such as {source}:half-month"
            )
        found[kind_of(source).kind].append(source)
    templates = yaml.safe_load(TEMPLATES_YAML.read_text(encoding="utf-8"))["periods"]
    deployments = []
    for kind, names in found.items():
        given = {"name": kind, "parameters": {"sources": names}}
        deployments.append(Deployment.model_validate({**templates[kind], **given}))
    return deployments
