"""The task that seals one month of one source, and what a Prefect server adds to a crawl.

Where a server is configured, its global concurrency limits ``tidemark-host-<host>`` let all
machines share the pace of a host (a limit that exists is left as it is), and its Secret blocks
``tidemark-<site key>`` hold tokens.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, cast

from prefect import task
from prefect.blocks.system import Secret
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import SecretStr

from core.claims import Claims
from core.corpus import Partition, Seal
from core.errors import SourceUnavailable
from core.month import Month
from core.settings import Settings, prefect_server
from core.storage import Store
from crawlers.circuit import CircuitOpen
from crawlers.contract import load_crawler
from crawlers.crawl import crawl_partition
from crawlers.pacing import LOCK_WAIT_S
from tasks.observe import observe, show_seal
from tasks.server import is_deployed, run_log, slot, wait_for_server
from tasks.stopping import go_on
from tasks.tracing import span

_SLOT_TRIES = 3  # of a deployed run, whose server may go away again


async def may_pass(_task: Any, _run: Any, state: Any) -> bool:
    """Retry only what may be well a moment later."""
    failure = await state.aresult(raise_on_failure=False)
    return isinstance(failure, SourceUnavailable) and not isinstance(failure, CircuitOpen)


# Short pauses: the fetcher has already retried each request for minutes.
@task(
    task_run_name="crawl {source} {month}",
    retries=2,
    retry_delay_seconds=[10, 60],
    retry_condition_fn=may_pass,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def crawl_month(source: str, month: Month, settings: Settings) -> Seal:
    """Seal one partition; one that is sealed already is left alone."""
    observe()
    began = dt.datetime.now(dt.UTC)
    with span("partition", source=source, month=str(month)):
        seal = crawl(source, month, Store(settings.home, settings.scratch), settings)
    show_seal(seal, began)
    return seal


def crawl(source: str, month: Month, store: Store, settings: Settings, **choices: Any) -> Seal:
    """Do ``crawl_partition``, with what a Prefect server adds, if one is configured.

    One process at a time crawls a partition; another one waits, and then finds what that has
    sealed. Tokens of the settings win over the server's.
    """
    if prefect_server():
        choices["turnstile"] = take_slot
        sites = load_crawler(source).INFO.all_sites(settings.languages.get(source, ()))
        settings = with_tokens(sites, settings)
    claims, partition = Claims(store), Partition(source, month).path
    while True:
        with claims.hold([partition]) as ours:
            if ours:
                return crawl_partition(source, month, store, settings, **choices)
        run_log().warning("waiting: another process crawls %s %s", source, month)
        claims.wait(partition, is_done=_never)


def _never() -> bool:
    """Only the other crawl's end ends the wait for it, or that of our own flow run."""
    go_on()
    return False


@contextlib.contextmanager
def take_slot(host: str) -> Iterator[None]:
    """Hold the one slot that all machines have for a host.

    Raises:
        SourceUnavailable: the server does not give it.
        Stopped: the flow run is being ended; this is where a crawl is between two requests.
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
                    wait_for_server()  # who started this by hand sees to the server
                    continue
                raise SourceUnavailable(
                    f"the Prefect server gives no slot of the limit {name} ({error}); "
                    "see that it runs, or unset PREFECT_API_URL"
                ) from error
        yield


@cache
def _make_limit(name: str, _server: str | None) -> None:
    """Have the server hold a limit of one slot, unless it has one of this name.

    Once a process and server: one on SQLite that had to refuse it at each request was seen to have
    its database locked for a minute.
    """
    with get_client(sync_client=True) as client:
        try:
            client.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            limit = GlobalConcurrencyLimitCreate(name=name, limit=1)
            with contextlib.suppress(ObjectAlreadyExists):  # by another process, just now
                client.create_global_concurrency_limit(limit)


def with_tokens(keys: Iterable[str], settings: Settings) -> Settings:
    """Return settings with the tokens of a source's sites that the server holds."""
    found = {key: token for key in keys if (token := _load_token(key)) is not None}
    return settings.model_copy(update={"tokens": {**found, **settings.tokens}})


def _load_token(key: str) -> SecretStr | None:
    name = f"tidemark-{key.replace('_', '-')}"  # a block's name has no underscores
    try:
        block = cast(Secret[Any], Secret.load(name))
    except ValueError:  # there is none
        return None
    except Exception as error:  # as in take_slot
        raise SourceUnavailable(
            f"the Prefect server does not say whether it has a token {name} ({error}); "
            "see that it runs, or unset PREFECT_API_URL"
        ) from error
    return SecretStr(str(block.get()))
