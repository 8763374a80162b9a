"""Limits and credentials for crawls from a Prefect server.

A concurrency limit ``tidemark-host-<host>`` lets only one machine at a time send requests to a
host. Existing limits are not changed. Secret blocks ``tidemark-<site key>`` contain tokens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import cache, partial

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import SecretStr

from core.environment import prefect_server
from core.errors import SourceUnavailable
from core.settings import Settings
from crawlers.web.pacing import LOCK_WAIT_S
from tasks.prefect.given import load_secret
from tasks.prefect.server import ask_once, in_time, run_log, wait_for_server

_LEASE_S = 60.0  # the server's minimum lease; a killed process holds its slot this long


@contextlib.contextmanager
def hold_slot(host: str, tries: int = 1) -> Iterator[None]:
    """Hold the single slot for requests to a host, during the ``with`` block.

    Between two ``tries``, wait for the server.

    Raises SourceUnavailable (no free slot) or Stopped (the flow run is ending).
    """
    name = f"tidemark-host-{host}"
    with contextlib.ExitStack() as stack:
        for attempt in range(tries):
            try:
                if attempt:
                    wait_for_server()
                _make_limit(name, prefect_server())
                stack.enter_context(slot(name, LOCK_WAIT_S))
                break
            except Exception as error:  # errors of Prefect and httpx share no base class
                if attempt < tries - 1:
                    continue
                raise SourceUnavailable(
                    f"the Prefect server gives no slot of the limit {name} ({error}); "
                    "check that it runs, or unset PREFECT_API_URL"
                ) from error
        yield


@cache
def _make_limit(name: str, _server: str | None) -> None:
    """Create a limit of one slot; cached, because frequent requests block a server with SQLite."""

    def make(client: SyncPrefectClient) -> None:
        try:
            client.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            limit = GlobalConcurrencyLimitCreate(name=name, limit=1)
            with contextlib.suppress(ObjectAlreadyExists):  # another process created the limit
                client.create_global_concurrency_limit(limit)

    ask_once(make)


@contextlib.contextmanager
def slot(limit: str, wait_s: float) -> Iterator[None]:
    """Hold a slot of a concurrency limit in the ``with`` block, even if the server goes down.

    If the limit does not exist, nothing is held. If no slot is free for ``wait_s`` seconds, or the
    server does not respond at the beginning, Prefect's exceptions are raised.
    """
    held = concurrency(
        limit, timeout_seconds=wait_s, lease_duration=_LEASE_S, raise_on_lease_renewal_failure=False
    )
    held.__enter__()
    try:
        yield
    finally:
        try:
            in_time(partial(held.__exit__, None, None, None))
        except Exception as error:  # noqa: BLE001, the lease ends by itself
            run_log().warning("the slot of the limit %s is not given back: %s", limit, error)


def add_block_tokens(keys: Iterable[str], settings: Settings) -> Settings:
    """Return settings with additional tokens of sites from Secret blocks of the server."""
    found: dict[str, SecretStr] = {}
    for key in keys:
        block = f"tidemark-{key.replace('_', '-')}"  # block names cannot contain underscores
        token = load_secret(block, SourceUnavailable, "or unset PREFECT_API_URL")
        if token is not None:
            found[key] = SecretStr(str(token))
    return settings.model_copy(update={"tokens": {**found, **settings.tokens}})
