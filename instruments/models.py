"""A cache that keeps one loaded model per process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

from core.errors import ModelLoadError
from core.plugins import import_parts
from core.settings import Settings
from models.backends import identify_texts, load_generator, load_scorer
from models.catalogue import ModelEntry, find_model
from models.generation import Decoding, Generator
from models.scoring.scorer import Scorer
from models.servers.budget import Budget


class _HasRevision(Protocol):
    @property
    def revision(self) -> str: ...


_Model = TypeVar("_Model", bound=_HasRevision)
Load = Callable[[ModelEntry, Settings, Budget], _Model]


class ModelHolder:
    """The cache: the last used model, and the spending budget of the run."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._key: tuple[object, ...] | None = None
        self._model: Any = None
        self._budget: Budget | None = None
        self._expected: tuple[ModelEntry, Settings] | None = None

    def expect(self, entry: ModelEntry, settings: Settings) -> None:
        """Announce the model after the next, whose files are fetched once the next is loaded."""
        with self._lock:
            self._expected = (entry, settings)

    def begin(self, settings: Settings) -> None:
        """Reset the spending budget, which all models of a run share, at the start of the run."""
        with self._lock:
            self._budget = Budget.of(settings)
            self._model = None

    def get(self, load: Load[_Model], entry: ModelEntry, settings: Settings) -> _Model:
        """Return the cached model; if another model is cached, replace it, using ``load``."""
        with self._lock:
            key = (load, entry, settings)
            if self._model is None or self._key != key:
                self._model = None
                self._budget = self._budget or Budget.of(settings)
                if entry.backend.from_hub:
                    from models.weights.cache import release_models

                    release_models()  # the files of the former model may go
                self._model = load(entry, settings, self._budget)
                self._key = key
                self._prefetch(entry)
            return cast(_Model, self._model)

    def _prefetch(self, present: ModelEntry) -> None:
        """Begin to fetch the files of the expected model, unless it is the present one."""
        expected = self._expected
        self._expected = None
        if expected is not None and expected[0] != present:
            from models.weights.prefetch import prefetch

            prefetch(*expected)

    @contextmanager
    def hold(
        self, load: Load[_Model], entry: ModelEntry, revision: str, settings: Settings
    ) -> Iterator[_Model]:
        """Yield a model for a ``with`` block; only one block at a time uses a local device.

        A model behind a server uses no local device, so several blocks may use it concurrently.

        Raises:
            ModelLoadError: the model cannot be loaded, or its files no longer match ``revision``.
        """
        with ExitStack() as stack:
            stack.enter_context(self._lock)
            model = self.get(load, entry, settings)
            if model.revision != revision:  # the files may have changed after loading
                self._model = None
                model = self.get(load, entry, settings)
            if model.revision != revision:
                self._model = None
                raise ModelLoadError(
                    f"{entry.name}: its files have revision {model.revision}, expected {revision}; "
                    "they changed since the cells were planned, so run the same command again"
                )
            if entry.backend.is_server:
                stack.close()
            yield model


held = ModelHolder()


def expect_model(model: str, settings: Settings) -> None:
    """Announce the name of a model that will be scored; see ``ModelHolder.expect``."""
    held.expect(find_model(model, settings), settings)


def scorer_of(entry: ModelEntry, settings: Settings, _budget: Budget) -> Scorer:
    """Load a model to compute losses; see ``models.backends.load_scorer``."""
    return load_scorer(entry, settings)


def generator_of(entry: ModelEntry, settings: Settings, budget: Budget) -> Generator:
    """Load a model for text generation; see ``models.backends.load_generator``."""
    part = _scripted(entry.name)
    if part is not None:
        scripted: Generator = part.ScriptedGenerator(entry.name, settings.puzzle_items)
        return scripted
    return load_generator(entry, settings, budget)


def generation_ids(
    entry: ModelEntry, ways: Sequence[Decoding], settings: Settings
) -> tuple[str, list[str]]:
    """Return a model's revision, and a hash per decoding in ``ways``, without loading weights."""
    if _scripted(entry.name) is not None or entry.backend.is_paid:
        generator = held.get(generator_of, entry, settings)
        return generator.revision, list(map(generator.generation_id, ways))
    identity = identify_texts(entry, settings)
    return identity.revision, list(map(identity.generation_id, ways))


def entry_of(model: str, settings: Settings) -> ModelEntry:
    """Return the catalogue entry of a model, or the entry that an extra gives a scripted model.

    Raises:
        UnknownName: the catalogue has no such model, or an extra no such scripted model.
    """
    part = _scripted(model)
    if part is None:
        return find_model(model, settings)
    entry: ModelEntry = part.control_entry(model, settings)
    return entry


def _scripted(model: str) -> ModuleType | None:
    """Return the module that defines a scripted model (fixed rules in place of a network)."""
    for part in import_parts("scripted"):
        if model.startswith(part.PREFIX):
            return part
    return None
