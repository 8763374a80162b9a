"""The limits and credentials that a Prefect server adds to a crawl.

Its concurrency limits ``tidemark-host-<host>`` share the pace of a host between all machines;
existing limits are not changed. Its Secret blocks ``tidemark-<site key>`` hold tokens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import SecretStr

from core.errors import SourceUnavailable
from core.settings import Settings, prefect_server
from crawlers.web.pacing import LOCK_WAIT_S, CircuitOpen
from instruments.stopping import go_on
from tasks.prefect.server import is_deployed, slot, wait_for_server
from tasks.prefect.storage_keys import load_secret

_SLOT_TRIES = 3  # of a deployed run, if the server goes away


async def may_pass(_task: Any, _run: Any, state: Any) -> bool:
    """Return True for a failure that may be temporary."""
    failure = await state.aresult(raise_on_failure=False)
    return isinstance(failure, SourceUnavailable) and not isinstance(failure, CircuitOpen)


@contextlib.contextmanager
def take_slot(host: str) -> Iterator[None]:
    """Hold the single slot that all machines share for a host.

    Raises SourceUnavailable (no slot) or Stopped (the flow run is being ended).
    """
    go_on()
    name = f"tidemark-host-{host}"
    with contextlib.ExitStack() as stack:
        for attempt in range(_SLOT_TRIES):
            try:
                _make_limit(name, prefect_server())
                stack.enter_context(slot(name, LOCK_WAIT_S))
                break
            except Exception as error:  # Prefect's and its HTTP client's are no family
                if is_deployed() and attempt < _SLOT_TRIES - 1:
                    wait_for_server()  # a person who started it by hand checks the server
                    continue
                raise SourceUnavailable(
                    f"the Prefect server gives no slot of the limit {name} ({error}); "
                    "see that it runs, or unset PREFECT_API_URL"
                ) from error
        yield


@cache
def _make_limit(name: str, _server: str | None) -> None:
    """Create a limit of one slot, once a process: at each request it locked SQLite for a minute."""
    with get_client(sync_client=True) as client:
        try:
            client.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            limit = GlobalConcurrencyLimitCreate(name=name, limit=1)
            with contextlib.suppress(ObjectAlreadyExists):  # by another process, just now
                client.create_global_concurrency_limit(limit)


def with_tokens(keys: Iterable[str], settings: Settings) -> Settings:
    """Return settings with the tokens of sites that the server holds."""
    found: dict[str, SecretStr] = {}
    for key in keys:
        block = f"tidemark-{key.replace('_', '-')}"  # a block's name has no underscores
        token = load_secret(block, SourceUnavailable, "or unset PREFECT_API_URL")
        if token is not None:
            found[key] = SecretStr(str(token))
    return settings.model_copy(update={"tokens": {**found, **settings.tokens}})
