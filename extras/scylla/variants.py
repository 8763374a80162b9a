r"""Variants of the question: with demonstrations, and with a second pass.

A variant's name is the protocol's first part. ``zero-shot-cot`` is the question of ``texts.py``.
K is the number of demonstrations, 1 to 8:

    few-shot-K          demonstrations without a task: Input: … Output: …
    mixed-K             the task, then demonstrations, as ``mixed`` in the code of Qi et al. 2024
    varied-K            each demonstration is of another puzzle, after its own task
    …-second            a second pass: the model sees its answer and is asked again
    …-likelihood        nothing is written; the likelihoods of prompt and right answers are measured

Few-shot and mixed prompts, and the second pass, have the forms of the authors' code (its steps 4
and 5). ``varied`` is ours: demonstrations differ in family and in level.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from core.errors import MalformedInput, UsageError
from core.settings import PUZZLE_PROMPT
from extras.scylla.demonstrations import draw_other_puzzles, render_answer
from extras.scylla.puzzle import Instance, Puzzle
from extras.scylla.texts import malformed, question_prompt, read_question

Kind = Literal["zero-shot-cot", "few-shot", "mixed", "varied"]
TRIGGER = "Therefore, the answer is"
_INPUT = "Input: "
_OUTPUT = "\nOutput:"
_NEXT = re.compile(r"\n\s*Input:")  # a model goes on with an input of its own
DIRECT_STOP = r"\n(?=\s*Input:)"


@dataclass(frozen=True)
class Variant:
    """A way to ask an item."""

    kind: Kind = "zero-shot-cot"
    num_demonstrations: int = 0
    is_second: bool = False  # True if the model is asked again, after its answer
    is_likelihood: bool = False  # True if likelihoods are measured, and nothing is written

    @property
    def name(self) -> str:
        """The name, such as ``mixed-8-second``."""
        count = f"-{self.num_demonstrations}" if self.num_demonstrations else ""
        likelihood = "-likelihood" if self.is_likelihood else ""
        return f"{self.kind}{count}{'-second' if self.is_second else ''}{likelihood}"

    @property
    def num_of_puzzle(self) -> int:
        """The number of demonstrations of the asked puzzle itself."""
        return 0 if self.kind == "varied" else self.num_demonstrations


def parse_variant(name: str) -> Variant:
    """Return the variant of a name; raise UsageError if there is none."""
    if not re.fullmatch(PUZZLE_PROMPT, name):
        raise UsageError(
            f"there is no prompt {name!r}; expected zero-shot-cot, few-shot-K, mixed-K or varied-K "
            "with K of 1 to 8, and -second or -likelihood after it (-likelihood needs K)"
        )
    plain = name.removesuffix("-second").removesuffix("-likelihood")
    kind, _, count = plain.rpartition("-") if plain[-1].isdigit() else (plain, "", "0")
    is_second = name.endswith("-second")
    is_likelihood = name.endswith("-likelihood")
    return Variant(cast("Kind", kind), int(count), is_second, is_likelihood)


def make_prompt(
    variant: Variant, puzzle: Puzzle, instance: Instance, shown: Sequence[Instance], seed: int
) -> str:
    """Return the prompt of an item; ``second_prompt`` is that of the second pass.

    ``shown`` has the ``variant.num_of_puzzle`` demonstrations of the puzzle. ``seed`` decides those
    of other puzzles.
    """
    if variant.kind == "zero-shot-cot":
        return question_prompt(puzzle, instance)
    parts = [] if variant.kind == "few-shot" else [puzzle.statement]
    parts += [_demonstration(puzzle, each) for each in shown]
    if variant.kind == "varied":
        others = draw_other_puzzles(puzzle, variant.num_demonstrations, seed)
        texts = [(other.statement, _demonstration(other, given)) for other, given in others]
        parts = [*(part for pair in texts for part in pair), puzzle.statement]
    return "\n\n".join([*parts, f"{_INPUT}{puzzle.render(instance)}{_OUTPUT}"])


def second_prompt(prompt: str, response: str) -> str:
    """Return the prompt of the second pass: the first prompt, the response, and a new request."""
    return f"{prompt}\n\n{response.strip()}\n\n{TRIGGER}"


def trim_response(variant: Variant, text: str) -> str:
    """Return a response to ``make_prompt`` as it is judged.

    With demonstrations, a text ends where the model goes on with an input of its own.
    """
    if variant.kind == "zero-shot-cot":
        return text
    return _NEXT.split(text, maxsplit=1)[0].strip().removeprefix("Output:").strip()


def has_gone_on(variant: Variant, text: str) -> bool:
    """Return True if the model goes on with an input of its own, so that its answer is complete."""
    return variant.kind != "zero-shot-cot" and _NEXT.search(text) is not None


def read_prompt(puzzle: Puzzle, prompt: str) -> Instance:
    """Return the input from a prompt of ``make_prompt`` or ``second_prompt``.

    Raises:
        MalformedInput: the prompt is not a question of this puzzle.
    """
    if _OUTPUT not in prompt:
        # In a second pass, the response follows the last words of the question.
        end = prompt.rfind(puzzle.answer_rule) + len(puzzle.answer_rule)
        name, instance = read_question(prompt[:end])
        if name != puzzle.name:
            raise malformed(prompt, f"a question of {puzzle.name}")
        return instance
    body = prompt[: prompt.rfind(_OUTPUT)].rpartition(_INPUT)[2]
    try:
        return puzzle.parse(body)
    except MalformedInput as error:
        raise malformed(prompt, f"a question of {puzzle.name}") from error


def _demonstration(puzzle: Puzzle, instance: Instance) -> str:
    answer = render_answer(puzzle, puzzle.solve(instance))
    return f"{_INPUT}{puzzle.render(instance)}{_OUTPUT} {answer}"
