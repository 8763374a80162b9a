"""The deployments to create: those of prefect.yaml, and those of extras."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from prefect.client.schemas.schedules import CronSchedule
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import MalformedInput, UsageError
from core.plugins import import_parts, list_folders
from core.version import code_version
from instruments.pools import POOLS

PREFECT_YAML = Path(__file__).with_name("prefect.yaml")
_FORMER_POOLS = ("one-gpu", "all-gpus", "apis")  # names in earlier versions
NEEDED = ("monthly/monthly", "work/gpu", "work/gpu-all", "work/api", "report/report")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pool(_Part):
    """The work pool of a deployment; ``job_variables`` override values of its job template."""

    name: str
    work_queue_name: str = "default"
    job_variables: dict[str, Any] = {}


class Deployment(_Part):
    """A deployment as described in prefect.yaml."""

    name: str
    description: str
    entrypoint: str  # module and function name of the flow, joined by a dot
    tags: tuple[str, ...]
    work_pool: Pool
    parameters: dict[str, Any] = {}
    schedules: tuple[CronSchedule, ...] = ()
    pull_steps: list[dict[str, Any]] = []

    @property
    def flow(self) -> str:
        """The function name of the flow."""
        return self.entrypoint.rpartition(".")[2]

    @property
    def full_name(self) -> str:
        """The names of flow and deployment, as Prefect shows them: ``work/gpu``."""
        return f"{self.flow}/{self.name}"

    def fields(self) -> dict[str, Any]:
        """Return the fields for Prefect's API, by name, without schedules."""
        flow: Flow[..., Any] = load_flow_from_entrypoint(
            self.entrypoint, use_placeholder_flow=False
        )
        schema = parameter_schema(flow).model_dump(mode="json", exclude_none=True)
        return {
            "description": self.description,
            "version": code_version(),
            "entrypoint": self.entrypoint,
            "tags": list(self.tags),
            "parameters": self.parameters,
            "parameter_openapi_schema": schema,
            "work_pool_name": self.work_pool.name,
            "work_queue_name": self.work_pool.work_queue_name,
            "job_variables": self.work_pool.job_variables,
            "pull_steps": self.pull_steps,
        }


class _File(_Part):
    name: str
    pull: list[dict[str, Any]]
    definitions: dict[str, Any]
    deployments: tuple[Deployment, ...]


def read_deployments(
    path: Path = PREFECT_YAML, period_sources: Sequence[str] = ()
) -> list[Deployment]:
    """Return all deployments to create; ``period_sources`` have one per kind of period.

    Raises:
        MalformedInput: the file is missing or malformed.
        UnknownName: there is no such source.
        UsageError: it is not of half-months or weeks, or the extra for them is missing.
    """
    file = _read(path)
    missing = {*NEEDED} - {each.full_name for each in file.deployments}
    if missing:
        raise MalformedInput(f"{path} lacks {', '.join(sorted(missing))}: runs need it")
    deployments = [*file.deployments]
    for folder in list_folders("deployments"):
        deployments += _read(folder / path.name).deployments
    deployments += _of_periods(period_sources)
    return [each.model_copy(update={"pull_steps": file.pull}) for each in deployments]


def _read(path: Path) -> _File:
    """Return the content of a file of deployments; raise MalformedInput for a bad one."""
    try:
        return _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise MalformedInput(
            f"{path} cannot be read ({error.strerror}): tidemark deploy runs from a checkout, "
            "installed with `make install` or `pip install -e .`"
        ) from error
    except (yaml.YAMLError, ValidationError) as error:
        raise MalformedInput(f"{path} does not describe deployments: {error}") from error


def _of_periods(sources: Sequence[str]) -> list[Deployment]:
    """Return the deployments of half-months and weeks, which an extra defines."""
    for part in import_parts("period_deployments"):
        deployments: list[Deployment] = part.list_deployments(sources)
        return deployments
    if sources:
        raise UsageError(
            "TIDEMARK_PERIOD_SOURCES is set, but the folder extras/period_schedules, which makes "
            "its deployments, is missing: put it back, or unset the former"
        )
    return []


def is_ours(full_name: str, entrypoint: str | None, parameters: dict[str, Any]) -> bool:
    """Return True if this or an earlier version of tidemark created the deployment."""
    flow, _, name = full_name.partition("/")
    of_ours = rf"(flows|extras\.\w+)\.{re.escape(flow)}\.{re.escape(flow)}"
    if not re.fullmatch(of_ours, entrypoint or ""):
        return False
    names = (flow, *POOLS, "half-month", "week", *_FORMER_POOLS)
    return name in names or (flow == "crawl" and parameters.get("source") == name)
