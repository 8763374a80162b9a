"""Scripted models: controls whose share of right answers is planted, puzzle by puzzle.

They write inputs of the numbers 0 to 99, and solve of each puzzle exactly the share that their
script says, in distribution and out of it. So scores, gaps and critical complexities are known
beforehand: what comes out of all stages must be these, to the last item.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from dataclasses import dataclass

from core.errors import UnknownName
from scylla.prompts import read_question
from scylla.puzzle import Answer, Instance, Puzzle, Rows
from scylla.registry import load_puzzle
from scylla.seeds import generator_of

PREFIX = "scripted:"
_LARGEST = 99
_EXAMPLES = 8  # in a text
_LENGTHS = (4, 5, 6, 6, 6, 7, 7, 8, 9, 10)
_CITIES = (4, 5, 5, 6)
_PROBE_SHARES = (1.0, 0.5)  # of probes, whose level nobody plants


@dataclass(frozen=True)
class Script:
    """What is planted.

    Attributes:
        id_shares: share of the items in distribution that is solved, of levels 1 to 5.
        ood_shares: likewise, out of distribution.
        parameters: weights that it is said to have, for views that go by size.
        refuses: it answers no question at all.
    """

    id_shares: tuple[float, ...] = (1.0,) * 5
    ood_shares: tuple[float, ...] = (1.0,) * 5
    parameters: int | None = None
    refuses: bool = False


SCRIPTS = {
    "valley": Script((1, 1, 0.75, 0.5, 0.25), (1, 0.75, 0.25, 0.25, 0.25), 10 * 10**9),
    "small": Script((1, 0.75, 0.5, 0.25, 0.25), (1, 0.25, 0.25, 0.25, 0.25), 10**9),
    "large": Script((1, 1, 1, 0.75, 0.5), (1, 1, 0.75, 0.25, 0.25), 100 * 10**9),
    "perfect": Script(),
    "generalises": Script((0.5,) * 5, (0.75,) * 5),
    "refuses": Script(refuses=True),
}


def list_scripted() -> list[str]:
    """Return the names of all scripted models."""
    return [f"{PREFIX}{name}" for name in sorted(SCRIPTS)]


class ScriptedModel:
    """One of them; nothing is remembered from item to item.

    Args:
        name: such as ``scripted:valley``.
        num_items: asked of each split, of which it solves its share.

    Attributes:
        script: what is planted.
        revision: digest of it.

    Raises:
        UnknownName: there is none of that name.
    """

    def __init__(self, name: str, num_items: int) -> None:
        if name not in list_scripted():
            raise UnknownName("scripted model", name, list_scripted())
        self.name = name
        self.script = SCRIPTS[name.removeprefix(PREFIX)]
        self._num_items = num_items
        definition = json.dumps(dataclasses.asdict(self.script))
        self.revision = hashlib.sha256(definition.encode()).hexdigest()[:12]

    def write_inputs(self, puzzle: Puzzle, seed: int) -> str:
        """Write inputs of a puzzle, as a language model might."""
        rng = generator_of(self.name, puzzle.name, seed)
        examples = [_example(puzzle, rng) for _ in range(_EXAMPLES)]
        lines = [json.dumps(rows[0] if puzzle.input_shape == "list" else rows) for rows in examples]
        return "Here are some test inputs:\n" + "\n".join(lines) + "\n"

    def answer(self, prompt: str, item: int) -> str:
        """Answer a question, as the only thing told is which item of its split it is.

        Raises:
            MalformedInput: this is no question.
        """
        if self.script.refuses:
            return "I would rather not do this."
        name, instance = read_question(prompt)
        puzzle = load_puzzle(name)
        is_known = max(max(row) for row in instance.rows) <= _LARGEST
        share = self._share(puzzle.level, is_known)
        is_right = item < round(share * self._num_items)
        answer = puzzle.solve(instance) if is_right else wrong_answer(puzzle, instance)
        numbers = ", ".join(map(str, answer))
        shown = numbers if puzzle.answer_shape == "number" else f"[{numbers}]"
        return f"I look at the numbers one after the other.\nThe answer is {shown}.\n"

    def _share(self, level: int | None, is_known: bool) -> float:
        if level is None:
            return _PROBE_SHARES[0 if is_known else 1]
        return (self.script.id_shares if is_known else self.script.ood_shares)[level - 1]


def wrong_answer(puzzle: Puzzle, instance: Instance) -> Answer:
    """Return an answer of the right shape that the verifier rejects."""
    right = puzzle.solve(instance)
    candidates = (
        right[:-1] + (right[-1] + number,) if right else (number,) for number in range(1, 1000)
    )
    return next(answer for answer in candidates if not puzzle.accepts(instance, answer))


def _example(puzzle: Puzzle, rng: random.Random) -> Rows:
    if puzzle.input_shape == "matrix":
        return _distances(rng.choice(_CITIES), rng)
    row = _numbers(rng)
    if puzzle.input_shape == "list":
        return (row,)
    shared = row[: rng.randint(2, 3)]
    other = _numbers(rng)
    place = rng.randint(0, len(other))
    return (row, other[:place] + shared + other[place:])


def _numbers(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.randint(0, _LARGEST) for _ in range(rng.choice(_LENGTHS)))


def _distances(size: int, rng: random.Random) -> Rows:
    rows = [[0] * size for _ in range(size)]
    for one in range(size):
        for other in range(one):
            rows[one][other] = rows[other][one] = rng.randint(1, _LARGEST)
    return tuple(map(tuple, rows))
