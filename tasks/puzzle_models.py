"""What writes as a model of the catalogue: on this machine, behind an API, or scripted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.settings import Settings
from core.storage import Store
from models.answer_budget import Budget
from models.catalogue import ModelEntry
from models.generator import Decoding, Generation, GenerationRequest, Generator
from scylla.registry import load_puzzle
from scylla.scripted import PREFIX, ScriptedModel
from tasks.held_model import HeldModel


class ScriptedGenerator:
    """A scripted model as a ``models.generator.Generator``."""

    def __init__(self, name: str, num_items: int) -> None:
        self._model = ScriptedModel(name, num_items)
        self.name, self.revision = name, self._model.revision

    def generation_id(self, decoding: Decoding) -> str:
        """It writes what it writes."""
        return decoding.digest

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """As ``Generator.generate``; keys are ``<puzzle>/<split>/<item>``."""
        for request in requests:
            puzzle, kind, number = request.key.split("/")
            if kind == "probe":
                text = self._model.write_inputs(load_puzzle(puzzle), request.seed)
            else:
                text = self._model.answer(request.prompt, int(number))
            yield Generation(request.key, text, "stop")


def _load(entry: ModelEntry, settings: Settings, budget: Budget) -> Generator:
    if entry.name.startswith(PREFIX):
        return ScriptedGenerator(entry.name, settings.puzzle_items)
    if entry.kind == "api":
        from models.api_generation import load_api_generator

        return load_api_generator(entry, settings, budget, Store(settings.home))
    from models.generation import load_generator

    return load_generator(entry, settings)


_held = HeldModel(_load)


def begin_puzzles(settings: Settings) -> None:
    """Give the run that begins its whole budget, of all its models together."""
    _held.begin(settings)


def loaded_generator(entry: ModelEntry, settings: Settings) -> Generator:
    """Return what writes as ``entry``; the model loaded before is let go first.

    Raises: as ``models.load.load_scorer``.
    """
    return _held.of(entry, settings)


def model_identity(
    entry: ModelEntry, ways: Sequence[Decoding], settings: Settings
) -> tuple[str, ...]:
    """Return a model's revision, and its hash for each way of writing, without its weights.

    Raises: as ``loaded_generator``.
    """
    if entry.name.startswith(PREFIX) or entry.kind == "api":
        generator = loaded_generator(entry, settings)
        return (generator.revision, *map(generator.generation_id, ways))
    from models.generation import generation_identity

    identity = generation_identity(entry, settings)
    return (identity.revision, *map(identity.generation_id, ways))
