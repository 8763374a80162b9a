"""Sessions of HTTP clients of model servers, and failures that may pass."""

from __future__ import annotations

from urllib.parse import urlsplit

import requests
from pydantic import SecretStr
from requests.adapters import HTTPAdapter


class TryAgain(Exception):
    """The server did not serve the request, at no cost; a retry may succeed.

    Attributes:
        pause_s: pause in s that the server requests before a retry, or None without a request.
        is_busy: True if the server works, but has too many requests (status 429).
    """

    def __init__(self, reason: str, pause_s: float | None = None, is_busy: bool = False) -> None:
        super().__init__(reason)
        self.pause_s = pause_s
        self.is_busy = is_busy


def open_session(address: str, key: SecretStr | None, num_at_once: int) -> requests.Session:
    """Return a session for a server, which sends the API key, with a pool of ``num_at_once``."""
    # The proxy of the environment cannot reach this machine's own addresses.
    session = requests.Session()
    host = urlsplit(address).hostname or ""
    session.trust_env = host not in ("localhost", "::1") and not host.startswith("127.")
    session.auth = _Bearer(key)
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=num_at_once))
    return session


class _Bearer(requests.auth.AuthBase):
    """Adds the API key to requests, or, without an API key, ignores credentials in ~/.netrc."""

    def __init__(self, key: SecretStr | None) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        return request
