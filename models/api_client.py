"""One question to an OpenAI-compatible chat API, and what became of it.

``POST <base>/chat/completions`` (https://platform.openai.com/docs/api-reference/chat). Errors are
``{"error": {"message", "type", "param", "code"}}``; of OpenRouter ``{"error": {"code": 402,
"message", "metadata"}}``, also under status 200. What matters here is who pays: an error of the
server costs nothing, but an answer that is lost on its way has been paid for.

The key is sent to this server alone, and stands in no message and no answer that leaves here, even
where the server repeats it.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any

import requests
import urllib3
from pydantic import SecretStr
from requests.adapters import HTTPAdapter

from core.errors import ModelError, ModelLoadError, UsageError
from models.chat_reply import first_choice, usage_of, without_lone_surrogates

MIN_KEY_CHARS = 8  # to hide a shorter one would spoil what is no key
_HIDDEN = "[key]"
_CONNECT_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 300.0  # some models think for minutes
_MAX_BYTES = 4 * 2**20
_BLOCK = 2**14
_PASSING = {409, 425, 429}  # and all from 500
_NO_WORD = {408, 504, 522, 524}  # a gateway waited in vain: the model may have answered
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_BUSY = {"rate_limit_exceeded", "rate_limit_error"}
_TOO_LONG = {"context_length_exceeded", "string_above_max_length", "request_too_large"}
_FILTERED = {"content_filter", "invalid_prompt", "moderation", "moderation_blocked"}
_FLAGGED = re.compile(
    r"\b(?:prompt|input|content|request)\b[^.]{0,20} flagged\b|flagged by moderation", re.IGNORECASE
)
_KEPT = ("id", "model", "choices", "usage")  # of an answer; others are of no use, or of any size
_MOST_DEEP = 32  # levels of JSON; messages have six
_OPTIONAL = ("temperature", "top_p", "seed", "max_tokens")


class TryAgain(Exception):
    """The server did not serve the request, at no cost.

    Attributes:
        pause_s: how long it asks to wait.
        is_busy: it serves others, and this one later (429).
    """

    def __init__(self, reason: str, pause_s: float | None = None, is_busy: bool = False) -> None:
        super().__init__(reason)
        self.pause_s, self.is_busy = pause_s, is_busy


class Lost(Exception):
    """An answer that cannot be read, and may have been paid for.

    Attributes:
        answer: what is known of it.
        pause_s: how long the server asks to wait.
    """

    def __init__(
        self, reason: str, answer: dict[str, Any] | None = None, pause_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.answer, self.pause_s = answer or {}, pause_s


class Unanswerable(Exception):
    """The server refuses this question alone; ``reason`` is what to write down."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Refused(Exception):
    """The server refuses this question, and does not say whether it refuses others, too."""


class Unsupported(Exception):
    """The model does not take a parameter that is optional; ``param`` names it."""

    def __init__(self, param: str) -> None:
        super().__init__(param)
        self.param = param


class ApiClient:
    """Sends questions to one API; may be used by several threads.

    Args:
        base: what stands before ``/chat/completions``.
        key: sent as a bearer token; None: the API asks for none.
        key_setting: the variable that holds it, for messages.
        num_at_once: connections kept.

    Raises:
        UsageError: the key is none.
    """

    def __init__(
        self, base: str, key: SecretStr | None, key_setting: str, num_at_once: int
    ) -> None:
        self.address = f"{base.rstrip('/')}/chat/completions"
        self._key, self._key_setting = key, key_setting
        self._session = requests.Session()
        self._session.auth = _Bearer(key, key_setting)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=num_at_once))

    def ask(self, body: dict[str, Any], request_id: str) -> dict[str, Any]:
        """Send a question once.

        Args:
            body: of the request.
            request_id: the same of a request that is sent again after its answer was lost, so that
                servers that know the header ``Idempotency-Key`` do not bill it twice.

        Returns:
            The answer's id, model, choices and usage, so far as it has them.

        Raises:
            TryAgain, Lost, Unanswerable, Refused, Unsupported: as they say.
            ModelLoadError: the key is refused, there is no money left, or no such model.
            ModelError: the server cannot be asked like this.
        """
        try:
            with self._session.post(
                self.address,
                json=body,
                headers={"Idempotency-Key": request_id, "Accept-Encoding": "identity"},
                stream=True,
                allow_redirects=False,  # the key is for this server
                timeout=(_CONNECT_TIMEOUT_S, _ANSWER_TIMEOUT_S),
            ) as response:
                data, failure = _read(response)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise self._no_connection(error) from None
        except requests.RequestException as error:
            raise ModelError(
                self._hide(f"{self.address}: {type(error).__name__}: {error}")
            ) from None
        answer = self._hide(_parse(data))
        if 200 <= response.status_code < 300:
            answer = self._completion(answer, failure)
            return {name: answer[name] for name in _KEPT if name in answer}
        if 300 <= response.status_code < 400:
            raise ModelLoadError(
                f"{self.address}: answered {response.status_code}, a redirect, which is not "
                "followed: the key is for this address; set the entry's location to the API's own"
            )
        raise self._refusal(
            response.status_code, answer, self._said(answer, data), _pause_asked_for(response)
        )

    def _said(self, answer: Any, data: bytes) -> str:
        """Return what an error says, for messages; the key is hidden before anything is cut."""
        error = answer.get("error") if isinstance(answer, dict) else None
        message = error.get("message") if isinstance(error, dict) else None
        text = self._hide(data.decode(errors="replace")) if answer is None else str(answer)
        return str(message or text)[:300]

    def _no_connection(self, error: requests.RequestException) -> Exception:
        """Say what it means that there is no answer: whether the request may have arrived."""
        cause = getattr(error.args[0], "reason", None) if error.args else None
        reason = self._hide(f"{type(error).__name__}: {cause or error}")[:200]
        if isinstance(error, requests.exceptions.SSLError):
            return ModelError(f"{self.address}: {reason}")
        never_sent = (requests.ConnectTimeout, requests.exceptions.ProxyError)
        if isinstance(error, never_sent) or isinstance(
            cause, urllib3.exceptions.NewConnectionError
        ):
            return TryAgain(reason)
        return Lost(reason)

    def _completion(self, answer: Any, failure: str | None) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise Lost(failure or "the answer is not JSON, or cut")
        message, finish = first_choice(answer)
        if finish == "error":
            raise Lost("the model failed on the way (finish_reason error)", answer)
        # A filter may leave no message, or no choice: that is the answer, and was paid.
        has_some = bool(answer.get("choices")) or usage_of(answer) is not None
        if message or (has_some and not answer.get("error")):
            return answer
        status = _status_said(answer)
        if status is not None and status < 500:
            raise self._refusal(status, answer, self._said(answer, b""), None)
        raise Lost(f"the answer has no message in it: {str(answer)[:200]}", answer)

    def _refusal(self, status: int, answer: Any, said: str, pause_s: float | None) -> Exception:
        """Return what an error of the server means."""
        where = f"{self.address}: answered {status}"
        fields, codes = _error_of(answer)
        if codes & _NO_MONEY or status == 402:
            return ModelLoadError(
                f"{where}: the account has no money or quota left ({', '.join(sorted(codes))}); "
                "top it up and run the same command again"
            )
        if status in _NO_WORD:
            return Lost(f"answered {status}: {said!r}", pause_s=pause_s)
        if status in _PASSING or status >= 500:
            return TryAgain(f"answered {status}: {said!r}", pause_s, is_busy=status == 429)
        if status == 451 or _is_filtered(fields, codes, said):
            return Unanswerable("content_filter", f"{where}: {said!r}")
        if codes & _TOO_LONG or status == 413 or "maximum context length" in said:
            return Unanswerable("too_long", f"{where}: {said!r}")
        if status == 401:  # some quote the key in part, so nothing of it is repeated
            return ModelLoadError(f"{where}: it refuses the key; {self._key_setting}")
        if status == 403:
            return Refused(f"{where}: it refuses the key, or this request; {self._key_setting}")
        if status == 404:
            return ModelLoadError(f"{where}: {said!r}; expected location and served_name of an API")
        param = fields.get("param")
        if status in (400, 422):
            param = _unsupported(param, said)
            return Unsupported(param) if param else Refused(f"{where}: {said!r}")
        return ModelError(f"{where}: {said!r}")

    def _hide(self, said: Any) -> Any:
        """Return what a server said, or an error, without the key."""
        if self._key is None:
            return said
        if isinstance(said, str):
            return said.replace(self._key.get_secret_value(), _HIDDEN)
        if isinstance(said, list):
            return [self._hide(each) for each in said]
        if isinstance(said, dict):
            return {self._hide(name): self._hide(value) for name, value in said.items()}
        return said


class _Bearer(requests.auth.AuthBase):
    """Sets the key; without one it keeps requests from sending what ~/.netrc has."""

    def __init__(self, key: SecretStr | None, key_setting: str) -> None:
        self._key = key
        value = key.get_secret_value() if key else "x" * MIN_KEY_CHARS
        is_sendable = value.isascii() and value.isprintable() and " " not in value
        if len(value) < MIN_KEY_CHARS or not is_sendable:
            value = ""  # for who prints a traceback with its variables
            raise UsageError(
                f"the key is none: expected at least {MIN_KEY_CHARS} printable ASCII characters "
                f"without spaces; {key_setting}"
            )

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        return request


def _read(response: requests.Response) -> tuple[bytes, str | None]:
    """Return the body, and why it is not whole; time and size are limited."""
    deadline = time.monotonic() + _ANSWER_TIMEOUT_S
    data = bytearray()
    try:
        # Not iter_content, which comes back only once it has a whole block.
        while block := response.raw.read1(_BLOCK, decode_content=True):
            data += block
            if len(data) > _MAX_BYTES:
                return b"", f"the answer has more than {_MAX_BYTES} bytes"
            if time.monotonic() > deadline:
                return bytes(data), f"the answer took more than {_ANSWER_TIMEOUT_S:.0f} s"
    except (urllib3.exceptions.HTTPError, OSError) as error:
        return bytes(data), f"{type(error).__name__}: {str(error)[:200]}"
    return bytes(data), None


def _parse(data: bytes) -> Any:
    try:
        return _plain(json.loads(data))
    except (ValueError, RecursionError):
        return None


def _plain(value: Any, most_deep: int = _MOST_DEEP) -> Any:
    """Return JSON that can be written down: texts as UTF-8, and nothing below so many levels."""
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list | dict) and most_deep == 0:
        return None
    if isinstance(value, list):
        return [_plain(each, most_deep - 1) for each in value]
    if isinstance(value, dict):
        return {
            without_lone_surrogates(name): _plain(each, most_deep - 1)
            for name, each in value.items()
        }
    return value


def _error_of(answer: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the fields of an error, and its codes."""
    error = answer.get("error") if isinstance(answer, dict) else None
    fields = error if isinstance(error, dict) else {}
    return fields, {str(fields[name]) for name in ("code", "type") if fields.get(name)}


def _status_said(answer: dict[str, Any]) -> int | None:
    """Return the status of an error that came as a success, where nothing was made; else None."""
    fields, codes = _error_of(answer)
    code = fields.get("code")
    if answer.get("choices"):
        return None
    if isinstance(code, int):
        return code
    known = ((_NO_MONEY, 402), (_BUSY, 429), (_TOO_LONG | _FILTERED, 400))
    return next((status for names, status in known if codes & names), None)


def _is_filtered(error: dict[str, Any], codes: set[str], said: str) -> bool:
    """Whether an error says that what was asked is not to be asked."""
    metadata = error.get("metadata")
    is_flagged = isinstance(metadata, dict) and "reasons" in metadata  # OpenRouter, with 403
    is_policy = any(code.startswith("content_policy") for code in codes)
    return bool(codes & _FILTERED) or is_flagged or is_policy or bool(_FLAGGED.search(said))


def _unsupported(param: object, said: str) -> str | None:
    """Return which of the parameters that a model can do without is meant by an error."""
    if param in _OPTIONAL:
        return str(param)
    return next((name for name in _OPTIONAL if f"'{name}'" in said or f'"{name}"' in said), None)


def _pause_asked_for(response: requests.Response) -> float | None:
    """Read Retry-After (RFC 9110, 10.2.3) as seconds; None where it is absent or unreadable."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())
