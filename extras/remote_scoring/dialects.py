"""The dialects of servers of likelihoods, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from transformers import PreTrainedTokenizerFast

from core.errors import NotMeasurable
from extras.remote_scoring.dialect import Dialect, Served
from extras.remote_scoring.echo import EchoDialect
from extras.remote_scoring.sglang import SglangDialect
from extras.remote_scoring.vllm import VllmDialect

DIALECTS: Mapping[str, Callable[[PreTrainedTokenizerFast], Dialect]] = {
    VllmDialect.name: lambda tokenizer: VllmDialect(),
    SglangDialect.name: SglangDialect,
    EchoDialect.name: EchoDialect,
}
# Servers that have no likelihoods of a prompt, by the name that they give themselves.
_WITHOUT = {
    "llamacpp": (
        "llama.cpp's server returns log-probabilities of generated tokens only, none of a prompt "
        "(ggml-org/llama.cpp issue 27174); score the .gguf file itself (kind gguf), or serve the "
        "weights with vLLM or SGLang"
    ),
}


def choose_dialect(
    stated: str | None, served: Served, tokenizer: PreTrainedTokenizerFast, where: str
) -> Dialect:
    """Return the stated dialect; without one, that of the server's program, else vLLM's.

    Raise NotMeasurable for a server that has no likelihoods of a prompt, whatever is stated.
    """
    if served.owner in _WITHOUT:
        raise NotMeasurable(f"{where}: {_WITHOUT[served.owner]}")
    by_owner = served.owner if served.owner in DIALECTS else VllmDialect.name
    return DIALECTS[stated or by_owner](tokenizer)
