"""A reader of compose.yaml and the Dockerfile, to run the services without Docker."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dotenv import dotenv_values

_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?:(:[-?])([^}]*))?\})")


class ComposeError(Exception):
    """The compose file or a service of it cannot be run; the message states the reason."""


@dataclass
class Image:
    """Command and environment of an image, read from a stage of a Dockerfile."""

    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    volumes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Service:
    """One service as Docker would run it, with paths and host names of the container."""

    name: str
    image: str
    argv: list[str]
    environment: dict[str, str]
    settings: dict[str, str]  # variables of ``env_file`` that ``environment`` lacks
    folder: str
    mounts: dict[str, str | None]  # path in container: volume, host path, or None (temporary)
    health: list[str] | None
    depends_on: dict[str, str]


def read_variables(path: Path) -> dict[str, str]:
    """Return the variables of an ``.env`` file, without variables that have no value."""
    return {k: v for k, v in dotenv_values(path, interpolate=False).items() if v is not None}


def read_services(path: Path, variables: Mapping[str, str]) -> dict[str, Service]:
    """Return the services of all active profiles (``COMPOSE_PROFILES``), dependencies first."""
    compose = interpolated(yaml.safe_load(path.read_text(encoding="utf-8")), variables)
    profiles = {*variables.get("COMPOSE_PROFILES", "").split(",")}
    services = {
        name: _service(name, raw, variables, path.parent)
        for name, raw in compose["services"].items()
        if not raw.get("profiles") or profiles & {*raw["profiles"]}
    }
    return {name: services[name] for name in _in_order(services)}


def interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace ``${NAME}``, ``${NAME:-default}``, ``${NAME:?why}`` and ``$$`` in all strings."""
    if isinstance(value, dict):
        return {key: interpolated(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolated(item, variables) for item in value]
    return _VARIABLE.sub(lambda m: _value(m, variables), value) if isinstance(value, str) else value


def _value(match: re.Match[str], variables: Mapping[str, str]) -> str:
    dollar, name, kind, text = match.groups()
    if dollar:
        return "$"
    if found := variables.get(name):
        return found
    if kind == ":?":
        raise ComposeError(f"{name} has no value: {text}")
    return text or ""


def _service(name: str, raw: dict[str, Any], variables: Mapping[str, str], beside: Path) -> Service:
    image = Image()
    if build := raw.get("build"):
        image = read_image(beside / build["context"] / "Dockerfile", build["target"])
    settings: dict[str, str] = {}
    for file in raw.get("env_file", []):
        if (beside / file["path"]).exists():
            settings |= read_variables(beside / file["path"])
        elif file.get("required", True):
            raise ComposeError(f"{beside / file['path']}, the settings of {name}, is not there")
    mounts: dict[str, str | None] = dict.fromkeys([*image.volumes, *raw.get("tmpfs", [])])
    for volume in raw.get("volumes", []):
        source, target = volume.split(":")[:2]
        mounts[target] = str(beside / source) if source.startswith(".") else source
    environment = {
        key: variables.get(key) if value is None else str(value)
        for key, value in raw.get("environment", {}).items()
    }
    given = {key: value for key, value in environment.items() if value is not None}
    # As in Docker, an entrypoint of the service also disables the command of the image.
    command = raw.get("command", [] if "entrypoint" in raw else image.command)
    return Service(
        name=name,
        image=raw["image"],
        argv=[*raw.get("entrypoint", image.entrypoint), *command],
        environment=image.environment | given,
        # As in Docker, a variable without a value also unsets that of an ``env_file``.
        settings={key: value for key, value in settings.items() if key not in environment},
        folder=image.folder,
        mounts=mounts,
        health=_health(raw.get("healthcheck")),
        depends_on={on: how["condition"] for on, how in raw.get("depends_on", {}).items()},
    )


def _health(check: dict[str, Any] | None) -> list[str] | None:
    if check is None:
        return None
    kind, *command = check["test"]
    if kind != "CMD":
        raise ComposeError(f"a health check is [CMD, program, …], not {check['test']}")
    return list(command)


def _in_order(services: Mapping[str, Service]) -> list[str]:
    """Return the names of the services, each after its dependencies."""
    order: list[str] = []

    def add(name: str, path: tuple[str, ...]) -> None:
        if name not in services or name in path:
            raise ComposeError(f"{' -> '.join((*path, name))}: not a service, or a circle")
        for dependency in services[name].depends_on:
            add(dependency, (*path, name))
        if name not in order:
            order.append(name)

    for name in services:
        add(name, ())
    return order


def read_image(dockerfile: Path, target: str) -> Image:
    """Return the image that a stage of a Dockerfile describes, including stages that it extends."""
    stages: dict[str, Image] = {}
    image = Image()
    for word, rest in _instructions(dockerfile):
        if word == "FROM":
            base, _, name = rest.split()
            former = stages.get(base, Image())
            image = stages[name] = Image(
                former.entrypoint, former.command, dict(former.environment), former.folder,
                [*former.volumes],
            )  # fmt: skip
        elif word == "ENV":
            image.environment |= dict(part.split("=", 1) for part in shlex.split(rest))
        elif word == "ENTRYPOINT":
            image.entrypoint = json.loads(rest)
        elif word == "CMD":
            image.command = json.loads(rest)
        elif word == "WORKDIR":
            image.folder = rest
        elif word == "VOLUME":
            image.volumes.append(rest)
    if target not in stages:
        raise ComposeError(f"{dockerfile} has no stage {target}, only {', '.join(stages)}")
    return stages[target]


def _instructions(dockerfile: Path) -> Iterator[tuple[str, str]]:
    lines = dockerfile.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word.upper(), rest.strip()
