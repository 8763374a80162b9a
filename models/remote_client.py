"""JSON over HTTP with a server of likelihoods: patient where waiting helps, trusting nothing."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from pydantic import SecretStr
from requests.adapters import HTTPAdapter

from core.errors import ModelError, ModelLoadError, NotMeasurable, UsageError

NUM_AT_ONCE = 8  # requests in flight, of all threads together
_MAX_TRIES = 5
_PAUSE_S = 1.0  # before the second try; doubled before each later one
_MAX_PAUSE_S = 60.0
_CONNECT_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 600.0  # a prompt waits its turn among those of others
_WORTH_ANOTHER_TRY = {429, 502, 503, 504}
_PASSING = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)


class _TryAgain(Exception):
    """A failure that may pass; ``pause_s`` is how long the server asks to wait."""

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


class RemoteClient:
    """Sends requests to one server; may be used by several threads.

    Args:
        address: base URL; with or without ``/v1`` at the end.
        api_key: sent as a bearer token, to this server alone.

    Attributes:
        address: base URL without ``/v1``, for messages.

    Raises:
        UsageError: the key has characters that a header cannot have.
    """

    def __init__(self, address: str, api_key: SecretStr | None) -> None:
        self.address = address.rstrip("/").removesuffix("/v1")
        self._session = requests.Session()
        self._session.auth = _Bearer(api_key)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=NUM_AT_ONCE))
        self._turns = threading.BoundedSemaphore(NUM_AT_ONCE)

    def ask(self, path: str, body: dict[str, Any] | None = None, max_bytes: int = 2**20) -> Any:
        """Send a request until it is answered.

        Args:
            path: below the address.
            body: sent by POST as JSON; without one, GET.
            max_bytes: longest answer.

        Returns:
            The answer's JSON; NaN and infinities are let through.

        Raises:
            ModelLoadError: the server refuses the key, or has no such path or model.
            NotMeasurable: it refuses the request.
            ModelError: it cannot be reached, fails, or answers with something else than JSON.
        """
        pause_s = _PAUSE_S
        for _ in range(_MAX_TRIES - 1):
            try:
                with self._turns:
                    return self._ask_once(path, body, max_bytes)
            except _TryAgain as failure:
                wanted = pause_s if failure.pause_s is None else failure.pause_s
                time.sleep(min(wanted, _MAX_PAUSE_S))
                pause_s *= 2
        try:
            with self._turns:
                return self._ask_once(path, body, max_bytes)
        except _TryAgain as failure:
            raise ModelError(
                f"{self.address}{path}: no answer in {_MAX_TRIES} tries ({failure}); see whether "
                "the server runs and what its log says, then score again"
            ) from failure

    def _ask_once(self, path: str, body: dict[str, Any] | None, max_bytes: int) -> Any:
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        try:
            with self._session.request(
                "GET" if body is None else "POST",
                self.address + path,
                json=body,
                stream=True,
                allow_redirects=False,  # the key is for this server
                timeout=(_CONNECT_TIMEOUT_S, _ANSWER_TIMEOUT_S),
            ) as response:
                data = self._read(response, path, max_bytes, deadline)
        except _PASSING as error:
            raise _TryAgain(f"{type(error).__name__}: {str(error)[:200]}") from error
        except requests.RequestException as error:
            raise ModelError(f"{self.address}{path}: {type(error).__name__}: {error}") from error
        self._check_status(response, path, data)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelError(
                f"{self.address}{path}: answered with something that is not JSON "
                f"({data[:100]!r}); expected vLLM's OpenAI-compatible server"
            ) from error

    def _read(
        self, response: requests.Response, path: str, max_bytes: int, deadline: float
    ) -> bytes:
        data = bytearray()
        for piece in response.iter_content(2**16):
            data += piece
            if len(data) > max_bytes:
                raise ModelError(
                    f"{self.address}{path}: the answer has more than {max_bytes} bytes; expected "
                    "the likelihoods of one prompt's tokens"
                )
            if time.monotonic() > deadline:
                raise _TryAgain(f"the answer took more than {_ANSWER_TIMEOUT_S:.0f} s")
        return bytes(data)

    def _check_status(self, response: requests.Response, path: str, data: bytes) -> None:
        status = response.status_code
        if status == 200:
            return
        where = f"{self.address}{path}: the server answered {status}"
        said = data.decode(errors="replace")[:300]
        if status in _WORTH_ANOTHER_TRY:
            raise _TryAgain(f"it answered {status}: {said!r}", _pause_asked_for(response))
        if status in (401, 403):
            raise ModelLoadError(f"{where}: {said!r}; set TIDEMARK_REMOTE_API_KEY to its key")
        if status == 404 or 300 <= status < 400:
            raise ModelLoadError(
                f"{where}: {said!r}; expected vLLM's OpenAI-compatible server there, which serves "
                "the model under the entry's served_name"
            )
        if 400 <= status < 500:
            raise NotMeasurable(
                f"{where}: {said!r}; where it is about the length, ask for a shorter --context or "
                "serve with a longer --max-model-len"
            )
        raise ModelError(f"{where}: {said!r}; see its log")


class _Bearer(requests.auth.AuthBase):
    """Sets the key; without one it keeps requests from sending what ~/.netrc has."""

    def __init__(self, api_key: SecretStr | None) -> None:
        self._key = api_key
        value = api_key.get_secret_value() if api_key else ""
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise UsageError(
                "TIDEMARK_REMOTE_API_KEY has characters that an HTTP header cannot have"
            )

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        return request


def _pause_asked_for(response: requests.Response) -> float | None:
    """Read Retry-After (RFC 9110, 10.2.3) as seconds; None where it is absent or unreadable."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())
