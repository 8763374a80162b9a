"""One request to an OpenAI-compatible chat API, and its outcome.

``POST <base>/chat/completions`` (https://platform.openai.com/docs/api-reference/chat). Errors are
``{"error": {"message", "type", "param", "code"}}``; OpenRouter's are ``{"error": {"code": 402,
"message", "metadata"}}``, even with status 200. Outcomes are classified by cost: a server error is
free, but a lost response may have been paid for.

The API key is sent only to this server. Messages and responses are stored without the API key, even
if the server repeats it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests
import urllib3
from pydantic import SecretStr

from core.errors import ModelError, ModelLoadError, UsageError
from core.json import JsonObject
from core.retry_after import read_retry_after
from models.servers.http import TryAgain, open_session

MIN_KEY_CHARS = 8  # hiding a shorter API key would also hide other text
_HIDDEN = "[key]"
_CONNECT_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 300.0  # some models reason for minutes
_MAX_BYTES = 4 * 2**20
_BLOCK = 2**14
_TEMPORARY = {409, 425, 429}  # temporary errors; all statuses from 500 on are, too, but for 501
_TIMEOUTS = {408, 504, 522, 524}  # statuses of timeouts, after which the model may have answered
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_BUSY = {"rate_limit_exceeded", "rate_limit_error"}
_TOO_LONG = {"context_length_exceeded", "string_above_max_length", "request_too_large"}
_FILTERED = {"content_filter", "invalid_prompt", "moderation", "moderation_blocked"}
_FLAGGED = re.compile(
    r"\b(?:prompt|input|content|request)\b[^.]{0,20} flagged\b|flagged by moderation", re.IGNORECASE
)
# Requests do not have `stream`, so an error about it is about its absence.
_STREAM = r"(?:\bstream(?:s|ing|ed)?\b|\bSSE\b|event-stream)"
_ONLY_STREAMS = re.compile(
    rf"\b(?:only|must|requires?|please|mandatory)\b[^.]{{0,20}}{_STREAM}"
    r"|\bnon-?\s?stream[^.]{0,40}(?:\bnot\b|n't|unsupported)"
    r"|(?:not|n't|for)\b[^.]{0,20}non-?\s?stream"
    rf"|{_STREAM}\W{{1,3}}\w{{0,8}}\W{{0,2}}"
    r"(?:only|must|has to|should|true|false|required|mandatory)\b"
    rf"|{_STREAM}.{{0,30}}(?:input should be true|field required|not support false)",
    re.IGNORECASE,
)
_STREAM_LINE = re.compile(rb"\s*(?:data|event|id|retry)?:")  # the first line of an event stream
_STREAM_TYPES = ("text/event-stream", "application/x-ndjson", "application/jsonl")
_STREAMED = (
    "{address}: answers in a stream (text/event-stream) only, which tidemark does not read; give "
    "an address with whole answers, or put a proxy such as LiteLLM before it"
)
_KEPT = ("id", "model", "choices", "usage")  # stored fields of a response
_MOST_CHARS = 300  # of an error's message
_MOST_DEEP = 32  # maximum depth of JSON; responses have a depth of six
_TEXTS = (None, "text", "output_text")  # types of message parts that contain text
_MOST_TOKENS = 10**9  # maximum plausible number of tokens in a response
_OPTIONAL = ("temperature", "top_p", "seed", "max_tokens")


@dataclass(frozen=True)
class Reply:
    """The text of a response; a message that a content filter removed is empty."""

    is_empty: bool  # True if there is no message
    text: str  # without reasoning
    refusal: str | None  # the model's words, if it refuses to answer
    finish: object  # finish reason: stop, length, content_filter, error, or a server's own


class Lost(Exception):
    """The response is lost but may have been paid for; ``answer`` is the part that was read."""

    def __init__(
        self, reason: str, answer: JsonObject | None = None, pause_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.answer = answer or {}
        self.pause_s = pause_s


class Streamed(Lost):
    """The server answers in a stream, though none was requested; it will answer others so, too."""


class Unanswerable(Exception):
    """The server refuses this request for its content or length; ``reason`` names the cause."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Refused(Exception):
    """The server refuses this request, and may refuse other requests."""


class Unsupported(Exception):
    """The model does not support an optional parameter, named by ``param``."""

    def __init__(self, param: str) -> None:
        super().__init__(param)
        self.param = param


class ApiClient:
    """Sends requests to one API; safe for threads. Raises UsageError if the API key is invalid."""

    def __init__(
        self, base: str, key: SecretStr | None, key_setting: str, num_at_once: int
    ) -> None:
        self.address = f"{base.rstrip('/')}/chat/completions"
        _require_key(key, key_setting)
        self._key = key
        self._key_setting = key_setting
        self._session = open_session(base, key, num_at_once)

    def ask(self, body: JsonObject, request_id: str) -> JsonObject:
        """Send a request once.

        Use the same ``request_id`` to repeat a request whose response was lost. Servers that
        support the header ``Idempotency-Key`` then bill it once.

        Returns:
            The response's id, model, choices and usage, if present.

        Raises:
            TryAgain, Lost, Unanswerable, Refused, Unsupported: see the classes.
            ModelLoadError: the API key is refused, the account is empty, or the model is unknown.
            ModelError: the server does not support such requests.
        """
        try:
            with self._session.post(
                self.address,
                json=body,
                headers={"Idempotency-Key": request_id, "Accept-Encoding": "identity"},
                stream=True,
                allow_redirects=False,  # a redirect would send the API key to another server
                timeout=(_CONNECT_TIMEOUT_S, _ANSWER_TIMEOUT_S),
            ) as response:
                data, failure = _read(response)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise self._no_connection(error) from None
        except requests.RequestException as error:
            raise ModelError(
                self._hide(f"{self.address}: {type(error).__name__}: {error}")
            ) from None
        answer = _mapped(_parse(data), self._hide)
        if 200 <= response.status_code < 300:
            self._require_whole(response.headers.get("Content-Type", "").lower(), data, answer)
            answer = self._completion(answer, failure)
            return {name: answer[name] for name in _KEPT if name in answer}
        if 300 <= response.status_code < 400:
            raise ModelLoadError(
                f"{self.address}: answered {response.status_code}, a redirect, which is not "
                "followed: the key is for this address; set the entry's location to the API's own"
            )
        pause_s = read_retry_after(response.headers.get("Retry-After"))
        raise self._refusal(response.status_code, answer, self._message_of(answer, data), pause_s)

    def _require_whole(self, kind: str, data: bytes, answer: Any) -> None:
        """Raise Streamed for a stream or a piece of one, and ModelLoadError for a web page."""
        first = answer or _parse(data.split(b"\n", 1)[0])
        is_piece = isinstance(first, dict) and first.get("object") == "chat.completion.chunk"
        if kind.startswith(_STREAM_TYPES) or _STREAM_LINE.match(data) or is_piece:
            raise Streamed(_STREAMED.format(address=self.address))
        if answer is None and (kind.startswith("text/html") or data.lstrip().startswith(b"<")):
            raise ModelLoadError(
                f"{self.address}: answered with a web page; expected location of an API, "
                f"such as https://…/v1, got {self._message_of(None, data)!r}"
            )

    def _message_of(self, answer: Any, data: bytes) -> str:
        """Return an error's message without the API key, at most ``_MOST_CHARS`` long."""
        error = answer.get("error") if isinstance(answer, dict) else None
        message = error.get("message") if isinstance(error, dict) else None
        text = self._hide(data.decode(errors="replace")) if answer is None else str(answer)
        return str(message or text)[:_MOST_CHARS]

    def _no_connection(self, error: requests.RequestException) -> Exception:
        """Return the exception for a failed connection: Lost if the request may have arrived."""
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

    def _completion(self, answer: Any, failure: str | None) -> JsonObject:
        """Return a response with a message; raise Lost or the refusal that it states."""
        if not isinstance(answer, dict):
            raise Lost(failure or "the answer is not JSON, or cut")
        choice = first_choice(answer)
        if choice.finish == "error":
            raise Lost("the model failed while it wrote (finish_reason error)", answer)
        # A response whose message a content filter removed is complete, and was paid for.
        is_complete = bool(answer.get("choices")) or usage_of(answer) is not None
        if not choice.is_empty or (is_complete and not answer.get("error")):
            return answer
        status = _status_said(answer)
        if status is not None and status < 500:
            raise self._refusal(status, answer, self._message_of(answer, b""), None)
        raise Lost(f"the answer has no message in it: {str(answer)[:200]}", answer)

    def _refusal(self, status: int, answer: Any, message: str, pause_s: float | None) -> Exception:
        """Return the exception for an error status; its class says if others would fail, too."""
        where = f"{self.address}: answered {status}"
        fields, codes = _error_of(answer)
        if codes & _NO_MONEY or status == 402:
            return ModelLoadError(
                f"{where}: the account has no money or quota left ({', '.join(sorted(codes))}); "
                "top it up and run the same command again"
            )
        if status not in _TEMPORARY and _ONLY_STREAMS.search(message):
            return ModelLoadError(f"{_STREAMED.format(address=self.address)} ({message!r})")
        if status in _TIMEOUTS:
            return Lost(f"answered {status}: {message!r}", pause_s=pause_s)
        if status in _TEMPORARY or (status >= 500 and status != 501):
            return TryAgain(f"answered {status}: {message!r}", pause_s, is_busy=status == 429)
        is_filtered = status == 451 or _is_filtered(fields, codes, message)
        if is_filtered or codes & _TOO_LONG or status == 413 or "maximum context length" in message:
            reason = "content_filter" if is_filtered else "too_long"
            return Unanswerable(reason, f"{where}: {message!r}")
        if status == 401:  # some servers quote part of the API key, so omit the message
            return ModelLoadError(f"{where}: it refuses the key; {self._key_setting}")
        if status == 403:
            return Refused(f"{where}: it refuses the key, or this request; {self._key_setting}")
        if status == 404:
            return ModelLoadError(
                f"{where}: {message!r}; expected location and served_name of an API"
            )
        if status in (400, 422):
            return self._bad_request(fields.get("param"), message, where)
        return ModelError(f"{where}: {message!r}")

    def _bad_request(self, param: object, said: str, where: str) -> Exception:
        param = _unsupported(param, said)
        return Unsupported(param) if param else Refused(f"{where}: {said!r}")

    def _hide(self, said: str) -> str:
        return said if self._key is None else said.replace(self._key.get_secret_value(), _HIDDEN)


def _require_key(key: SecretStr | None, key_setting: str) -> None:
    """Raise UsageError if an API key is too short, or cannot be sent in a header."""
    value = key.get_secret_value() if key else "x" * MIN_KEY_CHARS
    is_sendable = value.isascii() and value.isprintable() and " " not in value
    if len(value) < MIN_KEY_CHARS or not is_sendable:
        value = ""  # hides the API key in tracebacks that show variables
        raise UsageError(
            f"the key is none: expected at least {MIN_KEY_CHARS} printable ASCII characters "
            f"without spaces; {key_setting}"
        )


def _read(response: requests.Response) -> tuple[bytes, str | None]:
    """Read a body up to a limit of time or size; return it, and why it is incomplete or None."""
    deadline = time.monotonic() + _ANSWER_TIMEOUT_S
    data = bytearray()
    try:
        # read1 returns available data; iter_content would wait for whole blocks.
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
        return _mapped(json.loads(data), without_lone_surrogates)
    except (ValueError, RecursionError):
        return None


def _mapped(value: Any, change: Callable[[str], str], most_deep: int = _MOST_DEEP) -> Any:
    """Return JSON with ``change`` applied to all strings; drop levels below ``most_deep``."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | dict) and most_deep == 0:
        return None
    if isinstance(value, list):
        return [_mapped(each, change, most_deep - 1) for each in value]
    if isinstance(value, dict):
        return {change(k): _mapped(v, change, most_deep - 1) for k, v in value.items()}
    return value


def _error_of(answer: Any) -> tuple[JsonObject, set[str]]:
    """Return the fields of an error, and the codes that it states."""
    error = answer.get("error") if isinstance(answer, dict) else None
    fields = error if isinstance(error, dict) else {}
    return fields, {str(fields[name]) for name in ("code", "type") if fields.get(name)}


def _status_said(answer: JsonObject) -> int | None:
    """Return the real status of an error that was sent with HTTP status 200, or None if unknown."""
    fields, codes = _error_of(answer)
    code = fields.get("code")
    if answer.get("choices"):
        return None
    if isinstance(code, int):
        return code
    known = ((_NO_MONEY, 402), (_BUSY, 429), (_TOO_LONG | _FILTERED, 400))
    return next((status for names, status in known if codes & names), None)


def _is_filtered(error: JsonObject, codes: set[str], said: str) -> bool:
    """Return True if an error states that a content filter refused the request."""
    metadata = error.get("metadata")
    is_flagged = isinstance(metadata, dict) and "reasons" in metadata  # OpenRouter's error format
    is_policy = any(code.startswith("content_policy") for code in codes)
    return bool(codes & _FILTERED) or is_flagged or is_policy or bool(_FLAGGED.search(said))


def _unsupported(param: object, said: str) -> str | None:
    """Return the optional parameter that an error names, or None."""
    if param in _OPTIONAL:
        return str(param)
    return next((name for name in _OPTIONAL if f"'{name}'" in said or f'"{name}"' in said), None)


def user_message(text: str) -> list[dict[str, str]]:
    """Return the messages of a request with one user message."""
    return [{"role": "user", "content": without_lone_surrogates(text)}]


def without_lone_surrogates(text: str) -> str:
    """Replace lone surrogates (half of a cut emoji), which cannot be encoded as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def usage_of(answer: JsonObject) -> tuple[int, int] | None:
    """Return the numbers of input and output tokens that a response states, or None."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    num_in = usage.get("prompt_tokens")
    num_out = usage.get("completion_tokens")
    if type(num_in) is not int or type(num_out) is not int:
        return None
    is_sane = min(num_in, num_out) >= 0 and max(num_in, num_out) <= _MOST_TOKENS
    return (num_in, num_out) if is_sane else None


def first_choice(answer: JsonObject) -> Reply:
    """Return a response's first choice; it is empty if the response has none."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice = first if isinstance(first, dict) else {}
    stated = choice.get("message")
    message = stated if isinstance(stated, dict) else {}
    refusal = message.get("refusal")
    return Reply(
        is_empty=not message,
        text=_text_of(message.get("content")),
        refusal=refusal if isinstance(refusal, str) and refusal else None,
        finish=choice.get("finish_reason"),
    )


def _text_of(content: object) -> str:
    """Return the text of a message's content, without reasoning; a list of parts is joined."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    shown = [each for each in parts if isinstance(each, dict) and each.get("type") in _TEXTS]
    texts = (part.get("text") for part in shown)
    return "".join(text for text in texts if isinstance(text, str))
