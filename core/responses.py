"""The part of a model's response that answers: no reasoning, and no further messages."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
# Where a model goes on with the user's next message, which is no part of its answer.
_NEXT_TURN = re.compile(
    r"\n(?:#{1,3} ?)?(?:Human|User|Instruction) ?:|</s>|(?<=\S)\s*\[/?INST\]"
    r"|<(?:start|end)_of_turn>|<\|(?:im_start|im_end|eot_id|end|endoftext|user)\|>"
)


def answering_part(response: str) -> str:
    """Return a response without reasoning, whose opening tag may be missing, and next messages."""
    text = _END_OF_THOUGHT.split(_THOUGHT.sub("", response))[-1]
    return _NEXT_TURN.split(text, maxsplit=1)[0]
