"""The interface of servers that return the log-probability of every token of a prompt.

A dialect is a file of this folder with a class of three verbs: ``describe`` returns what the server
says about its weights, ``ask`` sends a prompt, and ``read`` returns the losses of an answer. Texts
are tokenized here and sent as ids, so that server and scorer use the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from core.errors import ModelError, ModelLoadError, NotMeasurable
from core.json import JsonObject
from extras.remote_scoring.client import RemoteClient
from models.scoring.scorer import Losses

IMPOSSIBLE = -9999.0  # vLLM's value for minus infinity, which JSON does not have
_BYTES_PER_TOKEN = 1024  # maximum response size per token; 60 to 150 bytes are usual


class Served(NamedTuple):
    """A model as a server lists it.

    Attributes:
        name: the name in requests.
        length: maximum number of tokens of prompt and completion, or None if it is not stated.
        owner: the server's program as it names itself (``owned_by``), such as ``vllm``, or empty.
        record: the whole entry of the list.
    """

    name: str
    length: int | None
    owner: str
    record: JsonObject


class Dialect(Protocol):
    """The requests and answers of one kind of server.

    Attributes:
        name: value of an entry's ``dialect``.
        advice: options of the server that mend what the probe finds, for messages.
    """

    name: str
    advice: str

    def describe(self, client: RemoteClient, served: Served) -> list[object]:
        """Return what the server says of its weights; another answer makes other cells.

        Raise ModelError if the server cannot be reached.
        """

    def ask(self, client: RemoteClient, served: Served, prompt: Sequence[int]) -> object:
        """Send the ids of a prompt; return the answer's JSON.

        Raise the errors of ``RemoteClient.ask``.
        """

    def read(self, answer: object, prompt: Sequence[int], where: str) -> Losses:
        """Return -ln p in nats of each token of the prompt except the first, (length - 1,).

        ``where`` begins the message of an error. Raise NotMeasurable if a likelihood is missing,
        impossible, or of another token.
        """


def max_bytes(num_tokens: int) -> int:
    """Return the maximum size of an answer about so many tokens."""
    return 2**20 + _BYTES_PER_TOKEN * num_tokens


def find_served(client: RemoteClient, name: str | None) -> Served:
    """Return the server's record of the named model; without a name, of its only model.

    The list is ``{"data": [...]}``, or without the object around it, as Together's.

    Raises:
        ModelLoadError: the server does not serve the model.
        ModelError: the server cannot be reached, or lists no models.
    """
    answer = client.ask("/v1/models")
    records = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(records, list) or not all(
        isinstance(record, dict) and isinstance(record.get("id"), str) for record in records
    ):
        raise ModelError(
            f"{client.address}/v1/models: expected a list of models as vLLM, SGLang and others "
            f"give it, got {str(answer)[:200]!r}"
        )
    found = [record for record in records if name in (None, record["id"])]
    if len(found) != 1:
        names = ", ".join(repr(record["id"])[:100] for record in records[:20])
        raise ModelLoadError(
            f"{client.address}: serves {names or 'nothing'}; set the entry's served_name to one "
            f"of them (it is {name!r})"
        )
    (record,) = found
    lengths = [record.get(key) for key in ("max_model_len", "context_length")]
    length = next((each for each in lengths if type(each) is int), None)
    return Served(record["id"], length, str(record.get("owned_by") or ""), record)


def only_choice(answer: object) -> JsonObject:
    """Return the only choice of an answer of ``/v1/completions``; empty if there is not one."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    return choice if isinstance(choice, dict) else {}


def require_length(stated: object, prompt: Sequence[int], where: str) -> None:
    """Raise NotMeasurable if a server read another number of tokens than it was sent.

    ``stated`` is the number that its answer states, or something else if it states none.
    """
    if type(stated) is int and stated != len(prompt):
        raise NotMeasurable(
            f"{where}: the server read {stated} tokens of a prompt of {len(prompt)}, so it cut the "
            "prompt, or put a start token before it; use a server that takes the prompt's ids as "
            "they are sent, with a context that is long enough"
        )


def num_used(answer: object) -> object:
    """Return the number of the prompt's tokens that an answer of ``/v1/completions`` states."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return usage.get("prompt_tokens") if isinstance(usage, dict) else None


def loss_of(value: Any, token: int, where: str) -> float:
    """Return -ln p in nats of a log-probability; raise NotMeasurable if it is none."""
    # The comparison is false for NaN; values slightly above 0 are rounding errors and pass.
    if type(value) not in (int, float) or not IMPOSSIBLE < value < 1e-3:
        raise NotMeasurable(
            f"{where}: the log-probability of token {token} is {str(value)[:50]}; expected a "
            f"finite number, not above 0 ({IMPOSSIBLE:.0f} stands for minus infinity); see "
            "whether the server cuts the distribution (top_k), or computes in a type that "
            "overflows (vLLM: --dtype)"
        )
    return max(0.0, float(-value))
