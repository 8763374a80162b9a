"""Stubs of servers of likelihoods: a tiny model behind the dialects of vLLM, SGLang and others.

The shapes are those of vLLM's ``entrypoints/openai/completion``, of SGLang's tests of ``/generate``
(``run_logprob_check``) and list of models, of Together's client, and of llama.cpp's server. A fault
changes the log-probabilities, whatever the dialect.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from core.settings import Settings
from models.catalogue import ModelEntry
from simulator.faults import Fault, FaultKind
from simulator.server import Request, Response, Site, Web, as_json

MAX_MODEL_LEN = 66  # of which the scorer has 64: a token is predicted last, and one is made

Answer = dict[str, Any]
Values = list[float | None]  # log-probability of each token of a prompt, null for the first
Spoil = Callable[[Answer, list[int]], object]
Plant = Callable[["Engine", list[int], Values], Values]


@cache
def model_of(folder: str) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder).eval()


@cache
def log_probabilities(folder: str, prompt: tuple[int, ...]) -> tuple[float | None, ...]:
    with torch.inference_mode():
        logits = model_of(folder)(torch.tensor([prompt])).logits[0].double()
    rows = torch.log_softmax(logits, dim=-1)[:-1]
    return (None, *(float(row[token]) for row, token in zip(rows, prompt[1:], strict=True)))


@dataclass
class Engine(Site):
    """A server of a model: ``name`` it serves, ``root`` it states, ``api_key`` it demands.

    An entry of it names the folder ``named``, or else that of the model, to compare weights with.
    It states ``max_model_len``; longer prompts are refused. ``spoil`` changes a response, ``plant``
    the log-probabilities. ``asked`` has the prompts and what was answered, in order.
    """

    folder: str
    settings: Settings
    name: str = "served/tiny"
    root: str = "served/tiny"
    api_key: str | None = None
    max_model_len: int | None = MAX_MODEL_LEN
    tokenizes: bool = True
    named: str = ""
    spoil: Spoil = lambda answer, prompt: answer
    plant: Plant | None = None
    asked: list[tuple[list[int], Values]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    web: Web = field(default_factory=Web)
    lock: Any = field(default_factory=threading.Lock)
    keys = ("likelihoods",)
    robots = None
    owner = ""
    path = "/v1/completions"

    def __post_init__(self) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.folder)

    @property
    def address(self) -> str:
        return self.web.urls["likelihoods"]

    @property
    def num_completions(self) -> int:
        return sum(path == self.path for _, _, path in self.web.requests)

    def entry(self, **fields: Any) -> ModelEntry:
        given = {"name": "remote-tiny", "kind": "remote", "location": self.address}
        return ModelEntry(**({**given, "tokenizer": self.named or self.folder} | fields))

    def fail(self, kind: FaultKind, times: int = 1, **fields: Any) -> None:
        self.web.faults.append(Fault(kind, "likelihoods", f"{self.path}$", times, **fields))

    def respond(self, request: Request) -> Response:
        authorization = request.headers.get("authorization")
        self.authorizations.append(authorization)
        if self.api_key and authorization != f"Bearer {self.api_key}":
            return as_json({"error": "Unauthorized"}, 401)
        if request.path == "/v1/models":
            return as_json(self.models())
        if request.path == "/tokenize" and self.tokenizes:
            return as_json(self.tokenize(json.loads(request.body)))
        if request.path == self.path:
            self.bodies.append(json.loads(request.body))
            return self.complete(json.loads(request.body))
        return as_json({"detail": "Not Found"}, 404)

    def models(self) -> object:
        record = {
            "id": self.name, "object": "model", "created": len(self.web.requests),
            "owned_by": self.owner, "root": self.root, "parent": None,
            "max_model_len": self.max_model_len,
        }  # fmt: skip
        return {"object": "list", "data": [record]}

    def tokenize(self, body: Any) -> Answer:
        ids = self.tokenizer(body["prompt"], add_special_tokens=False)["input_ids"]
        return {"count": len(ids), "max_model_len": self.max_model_len, "tokens": ids}

    def complete(self, body: Any) -> Response:
        raise NotImplementedError

    def refuse_length(self, prompt: list[int]) -> Response | None:
        if self.max_model_len is None or len(prompt) + 1 <= self.max_model_len:
            return None
        message = f"This model's maximum context length is {self.max_model_len} tokens."
        return as_json({"error": {"message": message, "code": 400}}, 400)

    def values(self, prompt: list[int]) -> Values:
        """Return the log-probabilities of a prompt, with the planted fault."""
        values: Values = list(log_probabilities(self.folder, tuple(prompt)))
        with self.lock:
            if self.plant is not None:
                values = self.plant(self, prompt, values)
            self.asked.append((prompt, values))
        return values


class VllmServer(Engine):
    owner = "vllm"

    def complete(self, body: Any) -> Response:
        prompt = body["prompt"]
        refusal = self.refuse_length(prompt)
        if refusal is not None:
            return refusal
        if "prompt_logprobs" not in body:
            return self.write(body)
        assert (body["prompt_logprobs"], body["max_tokens"]) == (0, 1)
        entries = [
            None if value is None
            else {str(token): {"logprob": value, "rank": 1, "decoded_token": "?"}}
            for value, token in zip(self.values(prompt), prompt, strict=True)
        ]  # fmt: skip
        choice = {"index": 0, "text": "", "finish_reason": "length", "prompt_logprobs": entries}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": 1}
        answer = {"id": "cmpl-1", "model": self.name, "choices": [choice], "usage": usage}
        return as_json(self.spoil(answer, prompt))

    def write(self, body: Any) -> Response:
        """Continue a prompt with the most likely tokens, as vLLM does at temperature 0."""
        assert (body["temperature"], body["top_k"], body["add_special_tokens"]) == (0, -1, False)
        ids = torch.tensor([body["prompt"]])
        made = model_of(self.folder).generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=1,
            max_new_tokens=body["max_tokens"], min_new_tokens=body["min_tokens"],
        )[0, ids.shape[1] :].tolist()  # fmt: skip
        text = self.tokenizer.decode(made, skip_special_tokens=True)
        finish = "stop" if made[-1] == self.tokenizer.eos_token_id else "length"
        choice = {"index": 0, "text": text, "finish_reason": finish, "prompt_logprobs": None}
        answer = {"choices": [choice], "usage": {"completion_tokens": len(made)}}
        return as_json(self.spoil(answer, body["prompt"]))


class SglangServer(Engine):
    owner = "sglang"
    path = "/generate"
    weights: str = "/weights/tiny"
    info_path: str = "/model_info"

    def respond(self, request: Request) -> Response:
        if request.path == self.info_path:
            about = {"model_path": self.weights, "is_generation": True, "weight_version": "default"}
            return as_json(about)
        return super().respond(request)

    def complete(self, body: Any) -> Response:
        prompt = body["input_ids"]
        assert body["sampling_params"]["max_new_tokens"] == 1
        limit = self.max_model_len
        if limit is not None and len(prompt) >= limit:
            said = f"The input ({len(prompt)} tokens) is longer than the model's context length"
            return as_json({"error": {"message": f"{said} ({limit} tokens)."}}, 400)
        about: Answer = {
            "id": "1", "finish_reason": {"type": "length", "length": 1},
            "prompt_tokens": len(prompt), "completion_tokens": 1, "cached_tokens": 0,
        }  # fmt: skip
        if body["return_logprob"]:
            # The default of logprob_start_len is -1: generated tokens only.
            start = body.get("logprob_start_len", -1)
            rows = [
                [value, token, None]
                for value, token in zip(self.values(prompt), prompt, strict=True)
            ]
            about["input_token_logprobs"] = rows[start:] if start >= 0 else []
            about["output_token_logprobs"] = [[-0.5, 7, None]]
        return as_json(self.spoil({"text": "x", "output_ids": [7], "meta_info": about}, prompt))


class EchoServer(Engine):
    """The ``echo`` of several servers; ``form`` chooses which."""

    owner = "someone"
    form: str = "generated"

    def complete(self, body: Any) -> Response:
        prompt = body["prompt"]
        known = {"model", "prompt", "echo", "logprobs", "max_tokens", "temperature"}
        assert set(body) <= known  # OpenAI refuses others
        assert (body["echo"], body["logprobs"], body["max_tokens"]) == (True, 1, 1)
        refusal = self.refuse_length(prompt)
        if refusal is not None:
            return refusal
        values = self.values(prompt)
        tokens = [self.shown(token) for token in prompt]
        if self.form == "first left out":
            tokens = tokens[1:]
            values = values[1:]
        made = self.lists(["!"], [-0.5])
        if self.form in ("generated", "ids", "first left out"):
            made = self.lists([*tokens, "!"], [*values, -0.5])
        elif self.form in ("prompt alone", "pieces"):
            made = self.lists(tokens, values)
        choice = {"index": 0, "text": "", "finish_reason": "length", "logprobs": made}
        answer: Answer = {"id": "cmpl-1", "model": self.name, "choices": [choice]}
        if self.form == "together":
            answer["prompt"] = [{"text": "", "logprobs": self.lists(tokens, values)}]
        return as_json(self.spoil(answer, prompt))

    def shown(self, token: int) -> str:
        if self.form == "ids":
            return f"token_id:{token}"
        if self.form == "pieces":
            return str(self.tokenizer.convert_ids_to_tokens(token))
        return str(self.tokenizer.decode([token]))

    def lists(self, tokens: list[str], values: Values) -> Answer:
        offsets = [sum(map(len, tokens[:place])) for place in range(len(tokens))]
        return {"tokens": tokens, "token_logprobs": values, "text_offset": offsets}

    def models(self) -> object:
        if self.form != "together":
            return super().models()
        record = {"id": self.name, "object": "model", "organization": "Someone"}
        return [{**record, "context_length": self.max_model_len}]


class LlamaCppServer(Engine):
    owner = "llamacpp"

    def models(self) -> object:
        record = {"id": self.name, "object": "model", "owned_by": self.owner, "meta": {}}
        return {"models": [{"name": self.name}], "object": "list", "data": [record]}
