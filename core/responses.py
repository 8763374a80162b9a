"""The part of a model's response that answers: no reasoning, and no further messages."""

from __future__ import annotations

import re
from itertools import islice

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
# Where a model goes on with the user's next message, which is no part of its answer.
_NEXT_TURN = re.compile(
    r"\n(?:#{1,3} ?)?(?:Human|User|Assistant|Instruction) ?:|</s>|(?<=\S)\s*\[/?INST\]"
    r"|<(?:start|end)_of_turn>|<[|｜](?:im_start|im_end|eot_id|end|endoftext|end▁of▁sentence"
    r"|start_header_id|(?i:user|assistant|system))[|｜]>"
)
# Where a model that continues texts asks itself a further question.
_NEXT_QUESTION = re.compile(
    r"\n[ #*>-]{0,8}(?:(?:Question|Problem|Puzzle)(?: ?#?\d{1,3})? ?(?:[:.*]|\r?\n)|Q ?:"
    r"|This question was asked on |Here is a puzzle,)"
)


def answering_part(response: str) -> str:
    """Return a response without reasoning, whose opening tag may be missing, and next messages."""
    text = _END_OF_THOUGHT.split(_THOUGHT.sub("", response))[-1]
    return _NEXT_TURN.split(text, maxsplit=1)[0]


def before_next_question(text: str) -> str:
    """Return the text before a further question; a text may begin with its own question."""
    for found in islice(_NEXT_QUESTION.finditer(text), 4):
        before = text[: found.start()].rstrip("*`\r\n ")
        is_introduction = before.endswith(":") and not before.endswith(("nswer:", " is:"))
        if before and not is_introduction:
            return before
    return text
