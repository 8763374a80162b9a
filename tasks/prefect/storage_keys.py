"""Credentials of the object store, from the Prefect server, for workers without credentials.

The Secret block ``tidemark-storage`` contains fsspec options as a JSON object, such as ``key``,
``secret``, ``token`` and ``endpoint_url``. The options stay in the memory of this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from prefect.blocks.system import Secret

from core.environment import prefect_server
from core.errors import StorageError, TidemarkError
from core.settings import Settings, load_settings
from core.storage.object_store import has_keys, parse_options, use_options

BLOCK = "tidemark-storage"
_given: ContextVar[Settings | None] = ContextVar("settings", default=None)


@contextmanager
def using(settings: Settings) -> Iterator[None]:
    """Let flows that the ``with`` block calls use ``settings``, not those of the environment.

    Settings are no parameter of flows, because the server stores and shows parameters.
    """
    token = _given.set(settings)
    try:
        yield
    finally:
        _given.reset(token)


def worker_settings() -> Settings:
    """Return the settings of a flow: those of ``using``, or of the environment after ``sign_in``.

    Raises UsageError or StorageError.
    """
    given = _given.get()
    if given is not None:
        return given
    settings = load_settings()
    sign_in(settings)
    return settings


def sign_in(settings: Settings) -> None:
    """Use the server's credentials for the data root, if the environment has no credentials.

    Raises StorageError if the server does not respond or the block is malformed.
    """
    scheme = settings.home.partition("://")[0]
    if settings.is_local or not prefect_server() or has_keys(scheme):
        return
    others = "unset PREFECT_API_URL, or give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    options = load_secret(BLOCK, StorageError, others)
    if options is not None:
        use_options(scheme, parse_options(options, f"the Secret block {BLOCK}"))


def load_secret(block: str, kind: type[TidemarkError], others: str) -> Any:
    """Return the value of a Secret block, or None if the server does not have the block.

    Raises ``kind`` if the server does not respond; the message ends with the hint ``others``.
    """
    try:
        return cast(Secret[Any], Secret.load(block)).get()
    except ValueError:
        return None
    except Exception as error:  # errors of Prefect and httpx share no base class
        raise kind(
            f"the Prefect server does not say whether it has a block {block} ({error}); see that "
            f"it runs, {others}"
        ) from error
