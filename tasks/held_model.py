"""The one model that this process holds for a use: weights are the expensive thing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from core.settings import Settings
from models.answer_budget import Budget
from models.catalogue import ModelEntry

Model = TypeVar("Model")


class HeldModel(Generic[Model]):
    """The model that was used last, and the budget of the run, which all its models share.

    Args:
        load: makes a model ready; it raises what ``of`` raises.
    """

    def __init__(self, load: Callable[[ModelEntry, Settings, Budget], Model]) -> None:
        self._load = load
        self._lock = threading.RLock()
        self._key: tuple[ModelEntry, Settings] | None = None
        self._model: Model | None = None
        self._budget: Budget | None = None

    def begin(self, settings: Settings) -> None:
        """Begin a run: what is held spends from the budget of the one before."""
        with self._lock:
            self._budget, self._model = Budget.of(settings), None

    def of(self, entry: ModelEntry, settings: Settings) -> Model:
        """Return what uses ``entry``; the model used before is let go first."""
        with self._lock:
            if self._model is None or self._key != (entry, settings):
                self._model = None
                self._budget = self._budget or Budget.of(settings)
                self._model = self._load(entry, settings, self._budget)
                self._key = (entry, settings)
            return self._model
