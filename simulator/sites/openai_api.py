"""Simulated OpenAI-compatible chat API that bills responses: ``POST /v1/chat/completions``.

The prompt determines the answer. The lengths of prompt and answer determine the number of tokens.
Errors have OpenAI's form: ``{"error": {"message", "type", "param", "code"}}``. ``ledger`` lists all
billed responses, including responses that the client did not receive.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from core.json import JsonObject
from simulator.server import QuirkName, Request, Response, as_json, take_quirk
from simulator.world import World

KEY = "sk-simulated-Tide0123456789"
MODEL = "sim-forecaster"
CONTEXT_TOKENS = 4096
_PHRASES = (
    "{letter}", "{letter}.", "({letter})", "**{letter}**", "{letter}. {option}",
    "The answer is {letter}.", "Answer: {letter}) {option}", "I think {letter}",
)  # fmt: skip
_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)

Mishap = Literal[
    # Unbilled errors: 429, 429 for an exhausted quota, 500, 401 with the API key in its message.
    "rate_limit", "no_quota", "server_error", "repeat_key",
    # Billed responses: truncated body, refusal, filtered text, text cut at the limit, no text.
    "cut_json", "refusal", "filtered", "cut", "silent",
]  # fmt: skip


@dataclass(frozen=True)
class Bill:
    """A response that was generated and billed."""

    prompt: str
    input_tokens: int
    output_tokens: int


@dataclass
class Site:
    """The API."""

    world: World | None = None
    keys_accepted: set[str] = field(default_factory=lambda: {KEY})  # valid credentials
    revoke_after: int | None = None  # billed responses until all API keys are revoked
    unsupported: tuple[str, ...] = ()  # parameters that the model rejects
    mishaps: list[Mishap] = field(default_factory=list)  # faults of the next responses
    # Unbilled responses, by text: all prompts that contain the text get the response.
    refusals: dict[str, Response] = field(default_factory=dict)
    # If True, a repeated ``Idempotency-Key`` gets the same response again without a second bill.
    replays: bool = False
    num_thought: int = 0  # reasoning tokens billed per response, in addition to ``max_tokens``
    pause_s: float = 0.0  # pause before each response, in seconds
    ledger: list[Bill] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  # prompts in order of arrival, billed or not
    bodies: list[JsonObject] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    most_busy: int = 0

    keys: tuple[str, ...] = ("openai_api",)
    robots: str | None = None
    quirks: dict[QuirkName, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, bytes] = {}
        self._busy = 0

    @property
    def billed(self) -> Counter[str]:
        """The number of billed responses by prompt."""
        return Counter(bill.prompt for bill in self.ledger)

    @property
    def billed_tokens(self) -> int:
        """The total number of billed input and output tokens."""
        return sum(bill.input_tokens + bill.output_tokens for bill in self.ledger)

    def write(self, prompt: str, seed: int) -> str:
        """Return the model's answer; a subclass may override this method."""
        return write_answer(prompt)

    def respond(self, request: Request) -> Response:
        """Respond to a request of the API."""
        if request.path != "/v1/chat/completions" or request.method != "POST":
            return _error(404, f"Invalid URL ({request.method} {request.path})", None)
        with self._lock:
            self._busy += 1
            self.most_busy = max(self.most_busy, self._busy)
        try:
            time.sleep(self.pause_s)
            with self._lock:
                return self._complete(request)
        finally:
            with self._lock:
                self._busy -= 1

    def _complete(self, request: Request) -> Response:
        """Answer a chat request: check its key, repeat known requests, and spoil some."""
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        mishap = self.mishaps.pop(0) if self.mishaps else None
        if self.revoke_after is not None and len(self.ledger) >= self.revoke_after:
            self.keys_accepted.clear()
        if key not in self.keys_accepted or mishap == "repeat_key":
            return _error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        try:
            body = json.loads(request.body)
            prompt = "".join(message["content"] for message in body["messages"])
        except (ValueError, KeyError, TypeError):
            return _error(400, "We could not parse the JSON body of your request.", None)
        self.requests.append(prompt)
        self.bodies.append(body)
        request_id = request.headers.get("idempotency-key", "")
        self.ids.append(request_id)
        own = [self.refusals[text] for text in self.refusals if text in prompt]
        refused = own[0] if own else self._refuse(body, prompt, mishap)
        if refused is not None:
            return refused
        if not (self.replays and request_id in self._known):
            self._known[request_id] = self._respond(body, prompt, mishap)
        data = self._known[request_id]
        if mishap == "cut_json":
            data = data[: len(data) // 2]
        return Response(200, {"Content-Type": "application/json"}, data)

    def _refuse(self, body: JsonObject, prompt: str, mishap: Mishap | None) -> Response | None:
        """Return the error that a request gets; None if it gets an answer."""
        if mishap == "rate_limit":
            error = _error(429, "Rate limit reached for requests", "rate_limit_exceeded")
            return Response(429, {**error.headers, "Retry-After": "0"}, error.body)
        if mishap == "no_quota":
            said = "You exceeded your current quota, please check your plan and billing details."
            return _error(429, said, "insufficient_quota", "insufficient_quota")
        if mishap == "server_error":
            return _error(500, "The server had an error.", None, "server_error")
        if take_quirk(self, "error_as_200"):
            return as_json({"error": {"code": 502, "message": "Provider returned error"}})
        if body.get("model") != MODEL:
            said = f"The model `{body.get('model')}` does not exist, or is closed to you."
            return _error(404, said, "model_not_found")
        for param in self.unsupported:
            if param in body:
                said = f"Unsupported parameter: '{param}' is not supported with this model."
                return _error(400, said, "unsupported_parameter", param=param)
        if _num_tokens(prompt) > CONTEXT_TOKENS:
            said = f"This model's maximum context length is {CONTEXT_TOKENS} tokens."
            return _error(400, said, "context_length_exceeded", param="messages")
        return None

    def _respond(self, body: JsonObject, prompt: str, mishap: Mishap | None) -> bytes:
        """Return an answer in JSON, spoilt as ``mishap`` says, and bill it."""
        text = self.write(prompt, int(body.get("seed") or 0))
        finish = "stop"
        message: JsonObject = {"role": "assistant", "content": text, "refusal": None}
        if mishap == "refusal":
            message |= {"content": None, "refusal": "I'm sorry, I can't help with that."}
        elif mishap == "filtered":
            message["content"] = ""
            finish = "content_filter"
        elif mishap == "cut":
            message["content"] = "Let me think about A"
            finish = "length"
        elif mishap == "silent":
            message["content"] = ""
        bill = Bill(prompt, _num_tokens(prompt) + 7, _num_tokens(text) + self.num_thought)
        self.ledger.append(bill)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        response: JsonObject = {
            "id": f"chatcmpl-{len(self.ledger)}",
            "object": "chat.completion",
            "created": 1_700_000_000 + len(self.ledger),
            "model": f"{MODEL}-2024-08-06",
            "choices": [choice],
            "usage": {
                "prompt_tokens": bill.input_tokens,
                "completion_tokens": bill.output_tokens,
                "total_tokens": bill.input_tokens + bill.output_tokens,
            },
        }
        if take_quirk(self, "extra_fields"):
            response |= {"provider": "Sim", "service_tier": "default"}
        if take_quirk(self, "missing_fields"):
            del response["usage"]
        return json.dumps(response).encode()


def chosen_letter(prompt: str) -> str:
    """Return the letter of the option that the model chooses; it depends only on the prompt."""
    letters: list[str] = [letter for letter, _ in _OPTION.findall(prompt)] or ["A"]
    return letters[_number_of(prompt) % len(letters)]


def write_answer(prompt: str) -> str:
    """Return the model's answer: the chosen letter, in one of several formats."""
    letter = chosen_letter(prompt)
    option = dict(_OPTION.findall(prompt)).get(letter, "")
    phrase = _PHRASES[_number_of(prompt) // 64 % len(_PHRASES)]
    return phrase.format(letter=letter, option=option)


def _number_of(prompt: str) -> int:
    return int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4])


def _num_tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // 4)


def refusal(status: int, code: str | int | None, message: str, **fields: Any) -> Response:
    """Return an error response, to be used as a value of ``Site.refusals``."""
    return as_json({"error": {"message": message, "code": code, **fields}}, status)


def _error(
    status: int, message: str, code: str | None, kind: str = "invalid_request_error",
    param: str | None = None,
) -> Response:  # fmt: skip
    return refusal(status, code, message, type=kind, param=param)
