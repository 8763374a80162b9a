"""Prompts of forecasting questions: the template of a protocol, filled in.

The crowd's forecast, the answer, the closing and the resolution dates are never part of a prompt.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.questions import Question
from models.answer_protocols import AnswerProtocol

LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class Prompt:
    """A prompt and the ways in which it may go on.

    Attributes:
        text: ends without a space or a line break.
        continuations: one an option, as shown; each begins with a space.
        order: which option of the question each continuation stands for.
        blank: the prompt with no question in it, for the unconditional normalisation.
    """

    text: str
    continuations: tuple[str, ...]
    order: tuple[int, ...]
    blank: str = "Answer:"


def prompts_of(question: Question, protocol: AnswerProtocol) -> list[Prompt]:
    """Return what is asked: one prompt, or one for each rotation of the options.

    A question of more options than there are letters has none in modes that need letters.
    """
    count = len(question.options)
    if protocol.mode != "text" and count > len(LETTERS):
        return []
    starts = range(count) if protocol.is_rotated else range(1)
    return [
        _prompt(question, protocol, tuple((start + place) % count for place in range(count)))
        for start in starts
    ]


def _prompt(question: Question, protocol: AnswerProtocol, order: tuple[int, ...]) -> Prompt:
    options = [" ".join(question.options[index].split()) for index in order]
    shown = options if protocol.mode == "text" else LETTERS[: len(options)]
    return Prompt(
        text=render(protocol.prompt, question, options),
        continuations=tuple(f" {option}" for option in shown),
        order=order,
    )


def render(template: str, question: Question, options: Sequence[str]) -> str:
    """Fill in a template; a line that shows a field the question does not have is left out.

    Args:
        template: text with ``$title``, ``$background``, ``$resolution_criteria``, ``$opened``,
            ``$lettered_options`` or ``$listed_options``.
        question: to be shown.
        options: in the order shown.
    """
    letters = zip(LETTERS, options, strict=False)  # more options than letters are listed only
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
    for line in template.splitlines():
        pattern = string.Template(line)
        names = pattern.get_identifiers()
        if not names or any(fields[name] for name in names):
            yield pattern.substitute(fields)
