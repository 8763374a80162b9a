"""Credentials of the object store, from the Prefect server, for workers without credentials.

The Secret block ``tidemark-storage`` contains fsspec options as a JSON object, such as ``key``,
``secret``, ``token`` and ``endpoint_url``. The options stay in the memory of this process.
"""

from __future__ import annotations

from core.environment import prefect_server
from core.errors import StorageError
from core.settings import Settings
from extras.object_store.client import has_keys, parse_options, use_options
from tasks.prefect.given import load_secret

BLOCK = "tidemark-storage"


def sign_in(settings: Settings) -> None:
    """Use the server's credentials for the data root, if the environment has no credentials.

    Raises StorageError if the server does not respond or the block is malformed.
    """
    scheme = settings.home.partition("://")[0]
    if not prefect_server() or has_keys(scheme):
        return
    others = "unset PREFECT_API_URL, or give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    options = load_secret(BLOCK, StorageError, others)
    if options is not None:
        use_options(scheme, parse_options(options, f"the Secret block {BLOCK}"))
