"""Settings and secrets of a flow, from the environment and the Prefect server."""

from __future__ import annotations

from typing import Any, cast

from prefect.blocks.system import Secret

from core.errors import TidemarkError
from core.plugins import import_parts
from core.settings import Settings, load_settings
from tasks.prefect.server import in_time


def worker_settings() -> Settings:
    """Return the settings of a flow, of the environment, with the server's credentials.

    Settings are no parameter of flows, because the server stores and shows parameters.

    Raises UsageError or StorageError.
    """
    settings = load_settings()
    take_credentials(settings)
    return settings


def take_credentials(settings: Settings) -> None:
    """Let extras take credentials for a data root that is not local from the Prefect server.

    Raises StorageError if the server does not respond.
    """
    if not settings.is_local:
        for part in import_parts("server_keys"):
            part.sign_in(settings)


def load_secret(block: str, kind: type[TidemarkError], others: str) -> Any:
    """Return the value of a Secret block, or None if the server does not have the block.

    Raises ``kind`` if the server does not respond; the message ends with the hint ``others``.
    """
    try:
        found = in_time(lambda: Secret.load(block))
        return cast(Secret[Any], found).get()
    except ValueError:
        return None
    except Exception as error:  # errors of Prefect and httpx share no base class
        raise kind(
            f"the Prefect server does not say whether it has a block {block} ({error}); see that "
            f"it runs, {others}"
        ) from error
