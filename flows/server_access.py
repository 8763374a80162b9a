"""Whether a Prefect server lets us in, asked before anything is done with it."""

from __future__ import annotations

from http import HTTPStatus

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError

from core.errors import UsageError
from core.settings import without_password

_REFUSALS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


def require_access(url: str) -> None:
    """See that the server knows our password; one that is away is waited for elsewhere.

    Raises:
        UsageError: it wants a password, or another one; ours is not in the message.
    """
    try:
        with get_client(sync_client=True) as client:
            client.api_version()
    except PrefectHTTPStatusError as error:
        if error.response.status_code not in _REFUSALS:
            raise
        raise UsageError(
            f"the Prefect server at {without_password(url)} does not let us in "
            f"({error.response.status_code}): set PREFECT_API_AUTH_STRING to what it was started "
            "with as PREFECT_SERVER_API_AUTH_STRING "
            "(user:password), here and in the environment of every worker"
        ) from None
    except httpx.TransportError:
        return
