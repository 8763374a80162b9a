"""The HTTP client of servers of likelihoods: API key, retries, and JSON responses."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import requests
from pydantic import SecretStr

from core.errors import ModelError, ModelLoadError, NotMeasurable, UsageError
from core.json import JsonObject
from core.retry_after import read_retry_after
from models.servers.http import TryAgain, open_session

_MAX_TRIES = 5
_PAUSE_S = 1.0  # pause before the first retry; doubled before each further retry
_MAX_PAUSE_S = 60.0
_CONNECT_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 600.0  # a request may wait for other clients' requests
_WORTH_ANOTHER_TRY = {429, 502, 503, 504}
_PASSING = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)


class RemoteClient:
    """Sends requests to one server; safe for threads.

    Raise UsageError if the API key has characters that a header cannot have.
    """

    def __init__(self, address: str, api_key: SecretStr | None, num_at_once: int) -> None:
        self.address = address.rstrip("/").removesuffix("/v1")
        _require_sendable(api_key)
        self._session = open_session(self.address, api_key, num_at_once)
        self._turns = threading.BoundedSemaphore(num_at_once)

    def ask(self, path: str, body: JsonObject | None = None, max_bytes: int = 2**20) -> Any:
        """Send a request, with retries, and return the response's JSON (NaN is allowed).

        Raises:
            ModelLoadError: the server refuses the API key, or has no such path or model.
            NotMeasurable: the server refuses the request.
            ModelError: the server cannot be reached, fails, or its response is not JSON.
        """
        failure: TryAgain | None = None
        for number in range(_MAX_TRIES):
            if failure is not None:
                usual_s = _PAUSE_S * 2 ** (number - 1)
                asked_s = failure.pause_s
                time.sleep(min(usual_s if asked_s is None else asked_s, _MAX_PAUSE_S))
            try:
                with self._turns:
                    return self._ask_once(path, body, max_bytes)
            except TryAgain as error:
                failure = error
        raise ModelError(
            f"{self.address}{path}: no answer in {_MAX_TRIES} tries ({failure}); see whether "
            "the server runs and what its log says, then score again"
        ) from failure

    def _ask_once(self, path: str, body: JsonObject | None, max_bytes: int) -> Any:
        """Send one request; return its JSON. ``TryAgain``: another try may succeed."""
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        try:
            with self._session.request(
                "GET" if body is None else "POST",
                self.address + path,
                json=body,
                stream=True,
                allow_redirects=False,  # a redirect would send the API key to another server
                timeout=(_CONNECT_TIMEOUT_S, _ANSWER_TIMEOUT_S),
            ) as response:
                data = self._read(response, path, max_bytes, deadline)
        except _PASSING as error:
            raise TryAgain(f"{type(error).__name__}: {str(error)[:200]}") from error
        except requests.RequestException as error:
            raise ModelError(f"{self.address}{path}: {type(error).__name__}: {error}") from error
        self._check_status(response, path, data)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelError(
                f"{self.address}{path}: answered with something that is not JSON "
                f"({data[:100]!r}); expected a server of likelihoods, such as vLLM"
            ) from error

    def _read(
        self, response: requests.Response, path: str, max_bytes: int, deadline: float
    ) -> bytes:
        """Return the body; raise an error if it is too long, or takes too much time."""
        data = bytearray()
        for piece in response.iter_content(2**16):
            data += piece
            if len(data) > max_bytes:
                raise ModelError(
                    f"{self.address}{path}: the answer has more than {max_bytes} bytes; expected "
                    "the likelihoods of one prompt's tokens"
                )
            if time.monotonic() > deadline:
                raise TryAgain(f"the answer took more than {_ANSWER_TIMEOUT_S:.0f} s")
        return bytes(data)

    def _check_status(self, response: requests.Response, path: str, data: bytes) -> None:
        """Raise the error that a status means; return if it is 200."""
        status = response.status_code
        if status == 200:
            return
        where = f"{self.address}{path}: the server answered {status}"
        said = data.decode(errors="replace")[:300]
        if status in _WORTH_ANOTHER_TRY:
            pause_s = read_retry_after(response.headers.get("Retry-After"))
            raise TryAgain(f"it answered {status}: {said!r}", pause_s)
        if status in (401, 403):
            raise ModelLoadError(f"{where}: {said!r}; set TIDEMARK_REMOTE_API_KEY to its key")
        if status == 404 or 300 <= status < 400:
            raise ModelLoadError(
                f"{where}: {said!r}; expected a server with this path, which serves the model "
                "under the entry's served_name (vLLM, or what the entry's dialect says)"
            )
        if 400 <= status < 500:
            raise NotMeasurable(
                f"{where}: {said!r}; where it is about the length, ask for a shorter --context or "
                "serve with a longer --max-model-len"
            )
        raise ModelError(f"{where}: {said!r}; see its log")


def _require_sendable(api_key: SecretStr | None) -> None:
    value = api_key.get_secret_value() if api_key else ""
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        raise UsageError("TIDEMARK_REMOTE_API_KEY has characters that an HTTP header cannot have")
