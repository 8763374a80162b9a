"""Keys of the object store from the Prefect server, for workers without keys of their own.

The Secret block ``tidemark-storage`` holds fsspec options as a JSON object, such as ``key``,
``secret``, ``token`` and ``endpoint_url``. They stay in this process's memory.
"""

from __future__ import annotations

from typing import Any, cast

from prefect.blocks.system import Secret

from core.errors import StorageError, TidemarkError
from core.settings import Settings, load_settings, prefect_server
from core.storage.object_store import has_keys, parse_options, use_options

BLOCK = "tidemark-storage"


def worker_settings() -> Settings:
    """Read a worker's settings (UsageError); sign in at its object store (StorageError)."""
    settings = load_settings()
    sign_in(settings)
    return settings


def sign_in(settings: Settings) -> None:
    """Take the data root's keys from the server, if it has keys and the environment has none.

    Raises StorageError if the server does not answer or the block is malformed.
    """
    scheme = settings.home.partition("://")[0]
    if settings.is_local or not prefect_server() or has_keys(scheme):
        return
    others = "unset PREFECT_API_URL, or give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if (options := load_secret(BLOCK, StorageError, others)) is not None:
        use_options(scheme, parse_options(options, f"the Secret block {BLOCK}"))


def load_secret(block: str, kind: type[TidemarkError], others: str) -> Any:
    """Return the value of a Secret block, or None if there is none.

    Raises an error of class ``kind`` if the server does not answer; ``others`` ends its message.
    """
    try:
        return cast(Secret[Any], Secret.load(block)).get()
    except ValueError:
        return None
    except Exception as error:  # Prefect's and its HTTP client's are no family
        raise kind(
            f"the Prefect server does not say whether it has a block {block} ({error}); see that "
            f"it runs, {others}"
        ) from error
