"""Answering protocols: the ways to ask a model a forecasting question.

Answers can be compared only if their protocol is the same. So the name of the protocol is a column
of all answers, and a hash covers its definition and its prompt file. :func:`get_answer_protocol`
parses names such as ``letter``, ``text-byte``, ``letter-rotated-chat``.

A prompt never contains the crowd's forecast, the answer, the closing date or the resolution date.
"""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, get_args

from core.cells.answers import Answer, NoAnswer
from core.corpus.questions import Question
from core.errors import UnknownName

_PROMPTS = Path(__file__).with_name("prompts")

Mode = Literal["letter", "text", "generate"]
Normalisation = Literal["none", "token", "byte", "unconditional"]


ROTATION_SEED = 0  # the usual one; another seed is another protocol
LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class AnswerProtocol:
    """One way to ask a model a question.

    Attributes:
        mode: ``letter`` or ``text`` reads the probability of each option's letter or text after the
            prompt. ``generate`` searches a generated response for a letter; the options are
            rotated by ``seed``.
        normalisation: change of an option's log-probability before the softmax: none, divided by
            tokens or UTF-8 bytes, or minus the log-probability after a prompt without question.
        is_rotated: True if each rotation of the options is asked and probabilities are averaged.
            The average cancels a model's preference for a position.
        is_chat: True if the prompt is put into the model's chat template.
        seed: seed of the rotation in mode ``generate``; a part of the name unless it is the usual.
        is_task: True for tasks made from texts, whose options continue the question's background.
            They have prompts of their own; in mode ``text`` the background alone.
    """

    mode: Mode
    normalisation: Normalisation = "none"
    is_rotated: bool = False
    is_chat: bool = False
    seed: int = ROTATION_SEED
    is_task: bool = False

    @property
    def name(self) -> str:
        """The name on the command line and in the ``protocol`` column."""
        parts = [
            "task" if self.is_task else "",
            self.mode,
            "" if self.normalisation == "none" else self.normalisation,
            "rotated" if self.is_rotated else "",
            "chat" if self.is_chat else "",
            "" if self.seed == ROTATION_SEED else f"seed-{self.seed}",
        ]
        return "-".join(filter(None, parts))

    @cached_property
    def prompt(self) -> str:
        """The text of the template file, which ``render`` fills in."""
        name = f"task-{self.mode}" if self.is_task else self.mode
        return (_PROMPTS / f"{name}.txt").read_text(encoding="utf-8")

    @property
    def digest(self) -> str:
        """Hash (eight hex digits) of the protocol's name and template."""
        definition = json.dumps([self.name, self.prompt])
        if self.mode == "generate":
            definition = json.dumps([self.name, self.prompt, "rotated", self.seed])
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


def list_answer_protocols() -> list[AnswerProtocol]:
    """Return all protocols, the simplest first; ``generate`` is for chat APIs, too."""
    asked = [
        AnswerProtocol(mode, normalisation, is_rotated, is_chat)
        for is_chat in (False, True)
        for is_rotated in (False, True)
        for mode in ("letter", "text")
        for normalisation in get_args(Normalisation)
    ]
    tasks = [
        *(AnswerProtocol("text", each, is_task=True) for each in get_args(Normalisation)),
        *(
            AnswerProtocol("letter", is_rotated=is_rotated, is_chat=is_chat, is_task=True)
            for is_chat in (False, True)
            for is_rotated in (False, True)
        ),
        AnswerProtocol("generate", is_task=True),
    ]
    return [*asked, AnswerProtocol("generate"), *tasks]


def get_answer_protocol(name: str) -> AnswerProtocol:
    """Return the protocol of a name; raise UnknownName, with a suggestion, if there is none."""
    # ``generate-seed-N`` rotates the options by another seed.
    seeded = re.fullmatch(r"(?P<task>task-)?generate-seed-(?P<seed>\d{1,9})", name, re.ASCII)
    if seeded:
        return AnswerProtocol("generate", seed=int(seeded["seed"]), is_task=bool(seeded["task"]))
    known = {protocol.name: protocol for protocol in list_answer_protocols()}
    if name not in known:
        raise UnknownName("answer protocol", name, list(known))
    return known[name]


@dataclass(frozen=True)
class Prompt:
    """A prompt and its possible continuations.

    Attributes:
        text: text of the prompt; it does not end with a space or a line break.
        continuations: letter or text of each option in shown order; each begins with a space.
        order: for each shown option, its index in the question.
        blank: a prompt without question, for the normalisation ``unconditional``.
    """

    text: str
    continuations: tuple[str, ...]
    order: tuple[int, ...]
    blank: str = "Answer:"


def prompts_of(question: Question, protocol: AnswerProtocol) -> list[Prompt]:
    """Return the question's prompts: one, or one for each rotation of the options.

    In mode ``generate``, the seed and the title give the rotation. So a model's preference for
    a position favours no option over many questions.

    The list is empty if the mode needs letters and there are more options than letters.
    """
    count = len(question.options)
    if protocol.mode != "text" and count > len(LETTERS):
        return []
    starts = range(count) if protocol.is_rotated else range(1)
    if protocol.mode == "generate":
        start = _rotation(question, protocol.seed, count)
        starts = range(start, start + 1)
    prompts = []
    for start in starts:
        order = tuple((start + place) % count for place in range(count))
        prompts.append(_prompt(question, protocol, order))
    return prompts


def _rotation(question: Question, seed: int, count: int) -> int:
    """Return the option that comes first, from 0 to ``count`` - 1, by seed and title."""
    name = f"{seed} {question.title}"  # a question published twice is asked once
    return int.from_bytes(hashlib.sha256(name.encode(errors="replace")).digest()[:8], "big") % count


def _prompt(question: Question, protocol: AnswerProtocol, order: tuple[int, ...]) -> Prompt:
    """Return the question's prompt; ``order`` has the index of each shown option."""
    options = [" ".join(question.options[index].split()) for index in order]
    shown = options if protocol.mode == "text" else LETTERS[: len(options)]
    return Prompt(
        text=render(protocol.prompt, question, options),
        continuations=tuple(f" {option}" for option in shown),
        order=order,
    )


def render(template: str, question: Question, options: Sequence[str]) -> str:
    """Fill in a template; omit lines whose fields are empty in the question."""
    letters = zip(LETTERS, options, strict=False)  # options after Z have no letter
    fields = {
        "title": question.title.strip(),
        "background": (question.background or "").strip(),
        "resolution_criteria": (question.resolution_criteria or "").strip(),
        "opened": question.opened_at.date().isoformat(),
        "lettered_options": "\n".join(f"{letter}. {option}" for letter, option in letters),
        "listed_options": "\n".join(f"- {option}" for option in options),
    }
    return "\n".join(_lines(template, fields)).rstrip()


def _lines(template: str, fields: dict[str, str]) -> Iterator[str]:
    """Yield the filled lines of a template; a line whose fields are all empty is left out."""
    for line in template.splitlines():
        pattern = string.Template(line)
        names = pattern.get_identifiers()
        if not names or any(fields[name] for name in names):
            yield pattern.substitute(fields)


class Answerer(Protocol):
    """A model that can answer questions."""

    @property
    def name(self) -> str:
        """Name of the model, as in the ``model`` column."""

    @property
    def revision(self) -> str:
        """Version of weights and tokenizer; for an API model, a digest of URL and served name."""

    def answering_id(self, protocol: AnswerProtocol) -> str:
        """Return a short hash of the facts that determine the answers, without the weights.

        Raise NotMeasurable if the model cannot answer under this protocol.
        """

    def answer(
        self, questions: Sequence[Question], protocol: AnswerProtocol
    ) -> Iterator[Answer | NoAnswer]:
        """Yield one answer to each question, in input order, as soon as it is ready.

        Without a choice, the answer has a ``reason``. If the server fails on a question, the result
        is a ``NoAnswer``. An answer does not depend on the other questions of the call.

        Raises:
            NotMeasurable: the model cannot answer under this protocol, or a single question does
                not fit into the device's memory.
            ModelError: a server cannot be reached, or fails.
        """
