"""Limits and tokens of sites that machines share through a Prefect server, by extras."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

from core.environment import prefect_server
from core.plugins import import_parts
from core.settings import Settings
from instruments.running.stopping import go_on

SLOT_TRIES = 3  # maximum number of attempts to take a slot, in a flow run


@contextmanager
def take_slot(host: str, tries: int = 1) -> Iterator[None]:
    """Let only one machine at a time send requests to a host, in the ``with`` block.

    Raises SourceUnavailable (no free slot after ``tries``) or Stopped (the flow run is ending).
    """
    go_on()
    with ExitStack() as stack:
        for part in _parts():
            stack.enter_context(part.hold_slot(host, tries))
        yield


def with_tokens(keys: Iterable[str], settings: Settings) -> Settings:
    """Return settings with additional tokens of sites from the server."""
    for part in _parts():
        settings = part.add_block_tokens(keys, settings)
    return settings


def _parts() -> tuple[ModuleType, ...]:
    return import_parts("server_sites") if prefect_server() else ()
