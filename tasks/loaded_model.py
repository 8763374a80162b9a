"""The model that this process holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from core.errors import ModelLoadError
from core.settings import Settings
from models.catalogue import ModelEntry
from models.load import load_scorer
from models.scorer import Scorer


class LoadedModel:
    """The one model that this process holds: weights are the expensive thing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[object, ...] | None = None
        self._scorer: Scorer | None = None

    @contextmanager
    def hold(self, entry: ModelEntry, revision: str, settings: Settings) -> Iterator[Scorer]:
        """Lend the scorer of ``entry``; one cell at a time uses the device.

        A remote model uses none of ours: it is lent to several at once.

        Raises:
            ModelLoadError: it cannot be loaded, or its files are of another revision by now.
        """
        with ExitStack() as stack:
            stack.enter_context(self._lock)
            scorer = self._load(entry, revision, settings)
            if entry.kind == "remote":
                stack.close()
            yield scorer

    def _load(self, entry: ModelEntry, revision: str, settings: Settings) -> Scorer:
        key = (entry, revision, settings.device, settings.dtype, settings.batch_tokens)
        if self._scorer is None or self._key != key:
            self._scorer = None  # let go of the old weights before the new ones come
            self._scorer, self._key = load_scorer(entry, settings), key
        if self._scorer.revision != revision:
            found, self._scorer = self._scorer.revision, None
            raise ModelLoadError(
                f"{entry.name}: its files have revision {found}, expected {revision}; they "
                "changed since the cells were planned, so score again"
            )
        return self._scorer
