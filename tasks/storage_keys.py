"""Keys of the object store from the Prefect server, for workers whose environment has none.

The Secret block ``tidemark-storage`` holds options of fsspec's as a JSON object, such as ``key``,
``secret``, ``token`` and ``endpoint_url``. They stay in this process's memory.
"""

from __future__ import annotations

from typing import Any, cast

from prefect.blocks.system import Secret

from core.errors import StorageError
from core.object_store import has_keys, parse_options, use_options
from core.settings import Settings, load_settings, prefect_server

BLOCK = "tidemark-storage"


def worker_settings() -> Settings:
    """Read the settings of a worker, and sign in at its object store.

    Raises:
        UsageError: a setting is not of its type.
        StorageError: as ``sign_in``.
    """
    settings = load_settings()
    sign_in(settings)
    return settings


def sign_in(settings: Settings) -> None:
    """Take the keys of the data root from the server, if it has any and the environment none.

    Raises:
        StorageError: the server does not answer, or the block is not what it should be.
    """
    scheme = settings.home.partition("://")[0]
    if settings.is_local or not prefect_server() or has_keys(scheme):
        return
    try:
        block = cast(Secret[Any], Secret.load(BLOCK))
    except ValueError:  # there is none
        return
    except Exception as error:  # Prefect's and its HTTP client's are no family
        raise StorageError(
            f"the Prefect server does not say whether it has a block {BLOCK} ({error}); see that "
            "it runs, unset PREFECT_API_URL, or give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from error
    use_options(scheme, parse_options(block.get(), f"the Secret block {BLOCK}"))
