"""The registry of backends, and the abilities of a model's entry.

The backends of the kernel are those of ``models/kinds.py``. An extra states its own in the tuple
``BACKENDS`` of its module ``backends``; a package of another project, in the group
``tidemark.backends`` of its entry points.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import NotMeasurable
from core.plugins import import_parts, list_entry_points
from core.settings import Settings
from models.choice import settings_for
from models.kinds import BACKENDS, Backend

if TYPE_CHECKING:  # prevents a circular import: catalogue imports this module
    from models.catalogue import ModelEntry
    from models.generation import Generator
    from models.options.protocols import Answerer
    from models.scoring.scorer import Identity, Scorer
    from models.servers.budget import Budget


def list_backends() -> list[Backend]:
    """Return all backends, ordered by kind."""
    return list(_by_kind().values())


def find_backend(kind: str) -> Backend:
    """Return the backend of a kind; raise ValueError with the known kinds if there is none."""
    known = _by_kind()
    if kind not in known:
        raise ValueError(f"there is no backend of kind {kind!r}; expected {', '.join(known)}")
    return known[kind]


@cache
def _by_kind() -> dict[str, Backend]:
    found = list(BACKENDS)
    for module in import_parts("backends"):
        found.extend(module.BACKENDS)
    for point in list_entry_points("backends"):
        found.append(point.load())
    return {each.kind: each for each in sorted(found, key=lambda each: each.kind)}


def identify(entry: ModelEntry, settings: Settings) -> Identity:
    """Return the Identity of an entry without loading weights; errors as in ``load_scorer``."""
    identity: Identity = _call(entry, "score", entry.backend.identify, settings)
    return identity


def load_scorer(entry: ModelEntry, settings: Settings) -> Scorer:
    """Load the scorer of an entry.

    Raises:
        ModelLoadError: weights or tokenizer are missing, unsafe or broken.
        NotMeasurable: the model is not a causal language model or has no fast tokenizer, its
            server omits likelihoods of tokens, or its backend computes no losses.
        ModelError: a remote model's server cannot be reached, or fails.
        UnknownName: there is no compressor of this name.
        UsageError: the machine lacks the device, or torch does not support the dtype.
    """
    scorer: Scorer = _call(entry, "score", entry.backend.load, settings)
    return scorer


def load_answerer(entry: ModelEntry, settings: Settings, budget: Budget) -> Answerer:
    """Load the answerer of an entry.

    Raises: the errors of ``load_scorer``, and
        NotMeasurable: models of this kind cannot answer questions.
        UsageError: the API key is missing, or the budget is in dollars but the entry has no prices.
    """
    more = [budget] if entry.backend.is_paid else []
    answerer: Answerer = _call(entry, "answer", entry.backend.load_answerer, settings, *more)
    return answerer


def load_generator(entry: ModelEntry, settings: Settings, budget: Budget) -> Generator:
    """Load the text generator of an entry; errors are those of ``load_answerer``."""
    more = [budget] if entry.backend.is_paid else []
    generator: Generator = _call(entry, "write", entry.backend.load_generator, settings, *more)
    return generator


def identify_texts(entry: ModelEntry, settings: Settings) -> Any:
    """Return the facts that determine an entry's generated texts, without loading weights."""
    return _call(entry, "write", entry.backend.identify_texts, settings)


def _call(
    entry: ModelEntry, ability: str, name: str | None, settings: Settings, *more: Budget
) -> Any:
    """Import and call the function ``module:function`` of a backend for an entry."""
    if name is None:
        default = f"a model of kind {entry.kind} cannot {ability}"
        raise NotMeasurable(f"{entry.name}: {entry.backend.cannot.get(ability, default)}")
    module, _, function = name.partition(":")
    called = getattr(importlib.import_module(module), function)
    return called(entry, settings_for(entry, settings), *more)


def kind_of(location: str) -> str:
    """Return the kind of the model at a location, judged by its name and its files."""
    # A file with the suffix of a backend, and a folder with such a file, are of its kind. A folder
    # with a config.json is a causal language model.
    if location.startswith(("http://", "https://")):
        return "remote"
    path = Path(location).expanduser()
    kind = kind_of_suffix(path.suffix)
    if kind:
        return kind
    if path.is_dir() and not (path / "config.json").exists():
        for backend in list_backends():
            if backend.suffix and any(path.glob(f"*{backend.suffix}")):
                return backend.kind
    return "causal_lm"


def kind_of_suffix(suffix: str) -> str | None:
    """Return the kind of models whose files have this suffix, such as ``.pth``."""
    for backend in list_backends():
        if suffix and backend.suffix == suffix:
            return backend.kind
    return None
