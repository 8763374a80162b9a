"""Scripted models: controls with a known share of right answers to each puzzle.

Scripted models write inputs with the numbers 0 to 99. A script states the shares of items that a
model solves in distribution (ID) and out of distribution (OOD). So all scores are known in advance.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.errors import UnknownName
from core.settings import Settings
from extras.scylla.demonstrations import LARGEST, draw_rows, render_answer
from extras.scylla.puzzle import Answer, Instance, Puzzle, load_puzzle
from extras.scylla.sampling import generator_of
from extras.scylla.variants import read_prompt
from models.catalogue import ModelEntry
from models.generation import Decoding, Generation, GenerationRequest

PREFIX = "scripted:"
_EXAMPLES = 8  # number of examples per text
_PROBE_SHARES = (1.0, 0.5)  # ID and OOD shares for probes (puzzles without a level)


@dataclass(frozen=True)
class Script:
    """The shares of ID and OOD items that the model solves, for puzzles of level 1 to 5."""

    id_shares: tuple[float, ...] = (1.0,) * 5
    ood_shares: tuple[float, ...] = (1.0,) * 5
    parameters: int | None = None  # claimed number of weights, for reports by model size
    refuses: bool = False  # True if the model answers no question


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
    """A scripted model, such as ``scripted:valley``.

    ``num_items`` is the number of items of each split. ``revision`` is a digest of the script.
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
        """Write inputs of a puzzle in the form of a language model's text."""
        rng = generator_of(self.name, puzzle.name, seed)
        examples = [draw_rows(puzzle, rng) for _ in range(_EXAMPLES)]
        lines = [json.dumps(rows[0] if puzzle.input_shape == "list" else rows) for rows in examples]
        return "Here are some test inputs:\n" + "\n".join(lines) + "\n"

    def answer(self, puzzle: Puzzle, prompt: str, item: int) -> str:
        """Answer a question; ``item`` is the item's index in its split."""
        if self.script.refuses:
            return "I would rather not do this."
        instance = read_prompt(puzzle, prompt)
        is_known = max(map(max, instance.rows)) <= LARGEST
        share = _PROBE_SHARES[0 if is_known else 1]
        if puzzle.level is not None:
            shares = self.script.id_shares if is_known else self.script.ood_shares
            share = shares[puzzle.level - 1]
        is_right = item < round(share * self._num_items)
        answer = puzzle.solve(instance) if is_right else wrong_answer(puzzle, instance)
        shown = render_answer(puzzle, answer)
        return f"I look at the numbers one after the other.\nThe answer is {shown}.\n"


def control_entry(model: str, settings: Settings) -> ModelEntry:
    """Return an entry for a scripted model: a control.

    Raises:
        UnknownName: there is no such scripted model.
    """
    script = ScriptedModel(model, settings.puzzle_items).script
    return ModelEntry(
        name=model,
        kind="control",
        location=model,
        parameters=script.parameters,
        notes="Solves a planted share of Scylla's puzzles.",
    )


class ScriptedGenerator:
    """A scripted model as a ``models.generation.Generator``."""

    def __init__(self, name: str, num_items: int) -> None:
        self._model = ScriptedModel(name, num_items)
        self.name = name
        self.revision = self._model.revision

    def generation_id(self, decoding: Decoding) -> str:
        """Return a hash of the decoding settings."""
        return decoding.digest

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """Yield one text per request; request keys are ``<puzzle>/<split>/<item>``."""
        for request in requests:
            puzzle, kind, number = request.key.split("/")
            if kind == "probe":
                text = self._model.write_inputs(load_puzzle(puzzle), request.seed)
            else:
                text = self._model.answer(load_puzzle(puzzle), request.prompt, int(number))
            yield Generation(request.key, text, "stop")


def wrong_answer(puzzle: Puzzle, instance: Instance) -> Answer:
    """Return an answer of the right shape that ``Puzzle.accepts`` rejects."""
    right = puzzle.solve(instance) or (0,)
    candidates = (right[:-1] + (right[-1] + number,) for number in range(1, 1000))
    return next(answer for answer in candidates if not puzzle.accepts(instance, answer))
