"""Answering protocols: how a model is asked a forecasting question, and its answer read off.

An answer means something only together with its protocol, so each has a name (a column of every
answer) and a hash over its definition and the text of its prompt. Names are made of parts, which
:func:`get_answer_protocol` reads back: ``letter``, ``text-byte``, ``letter-rotated-chat``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from core.errors import UnknownName

_PROMPTS = Path(__file__).with_name("prompts")

Mode = Literal["letter", "text", "generate"]
Normalisation = Literal["none", "token", "byte", "unconditional"]


@dataclass(frozen=True)
class AnswerProtocol:
    """One way to ask.

    Attributes:
        mode: the probability of each option's letter, or of its full text, after the prompt; or
            the model writes, and a letter is looked for in what it wrote.
        normalisation: of an option's log-probability before the softmax over options: none, per
            token, per UTF-8 byte, or less its log-probability after a prompt without the question.
        is_rotated: asked once for each rotation of the options; probabilities are averaged, so that
            a liking for a place in the list cancels.
        is_chat: the prompt is put into the model's chat template.
    """

    mode: Mode
    normalisation: Normalisation = "none"
    is_rotated: bool = False
    is_chat: bool = False

    @property
    def name(self) -> str:
        """As on the command line and in the ``protocol`` column."""
        parts = [
            self.mode,
            "" if self.normalisation == "none" else self.normalisation,
            "rotated" if self.is_rotated else "",
            "chat" if self.is_chat else "",
        ]
        return "-".join(filter(None, parts))

    @cached_property
    def prompt(self) -> str:
        """The text file of the prompt; ``question_prompt`` fills it in."""
        return (_PROMPTS / f"{self.mode}.txt").read_text(encoding="utf-8")

    @property
    def digest(self) -> str:
        """Eight hex digits over the definition and the prompt's text."""
        definition = json.dumps([self.name, self.prompt])
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


def list_answer_protocols() -> list[AnswerProtocol]:
    """Return all protocols, the simplest first. A model that writes is a chat model anyway."""
    asked = [
        AnswerProtocol(mode, normalisation, is_rotated, is_chat)
        for is_chat in (False, True)
        for is_rotated in (False, True)
        for mode in ("letter", "text")
        for normalisation in get_args(Normalisation)
    ]
    return [*asked, AnswerProtocol("generate")]


def get_answer_protocol(name: str) -> AnswerProtocol:
    """Return the protocol of a name.

    Raises:
        UnknownName: there is none of that name; the message suggests the nearest.
    """
    known = {protocol.name: protocol for protocol in list_answer_protocols()}
    if name not in known:
        raise UnknownName("answer protocol", name, list(known))
    return known[name]
