"""Backends: each kind of model has one file in this folder, which states its abilities.

The file contains one statement of this form::

    BACKEND = Backend(kind="rwkv", on_device=True, identify=identify_rwkv, load=load_rwkv)

The values are literals or names of functions in the file. So the statement is parsed without an
import of the file, which would take seconds. Only a call of such a function imports the file.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import models
from core.errors import NotMeasurable
from core.settings import Settings
from models.choice import settings_for

if TYPE_CHECKING:  # prevents a circular import: catalogue imports this module
    from models.catalogue import ModelEntry
    from models.generation import Generator
    from models.options.protocols import Answerer
    from models.scoring.scorer import Identity, Scorer
    from models.servers.budget import Budget

T = TypeVar("T")
_STATEMENT = re.compile(r"^BACKEND = (Backend\(.*?\))$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Backend:
    """The abilities of a kind of model.

    Attributes:
        on_device: True if the model runs on the device and in the dtype of the settings.
        is_listed: True if catalogue files may contain entries of this kind.
        is_control: True for compressors, whose loss depends on the text alone.
        codes: True if the codec can compress texts with the model's probabilities.
        answers_together: number of requests sent to a server at once; 0 without a server.
        fields: optional fields of ``ModelEntry`` that this backend uses.
        needs: those of ``fields`` that an entry must set.
        cannot: error message for each missing ability (``score``, ``answer``, ``write``).
        identify: function that returns the Identity of an entry without loading weights.
        load: function that returns the scorer of an entry, or None if models have no losses.
        load_answerer: function that returns the answerer of an entry, or None if the models cannot
            answer. A paid backend's function takes the budget of the run as third argument.
        load_generator: function that returns a text generator, or None if models write no texts.
        identify_texts: function that returns the facts that determine the generated texts.
    """

    kind: str
    on_device: bool = False
    from_hub: bool = False
    is_listed: bool = False
    is_control: bool = False
    is_server: bool = False
    is_paid: bool = False
    codes: bool = False
    answers_together: int = 0
    fields: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    cannot: Mapping[str, str] = field(default_factory=dict)
    identify: Callable[[ModelEntry, Settings], Identity] | None = None
    load: Callable[[ModelEntry, Settings], Scorer] | None = None
    load_answerer: Callable[..., Answerer] | None = None
    load_generator: Callable[..., Generator] | None = None
    identify_texts: Callable[[ModelEntry, Settings], Any] | None = None

    @property
    def answers(self) -> bool:
        """True if models of this kind can answer forecasting questions."""
        return self.load_answerer is not None


def list_backends() -> list[Backend]:
    """Return all backends, ordered by file name."""
    return list(_read_folders(tuple(models.__path__)).values())


def find_backend(kind: str) -> Backend:
    """Return the backend of a kind; raise ValueError with the known kinds if there is none."""
    known = _read_folders(tuple(models.__path__))
    if kind not in known:
        raise ValueError(f"there is no backend of kind {kind!r}; expected {', '.join(known)}")
    return known[kind]


@cache
def _read_folders(folders: tuple[str, ...]) -> dict[str, Backend]:
    found = {}
    for path in (path for folder in folders for path in sorted(Path(folder).glob("*.py"))):
        if statement := _STATEMENT.search(path.read_text(encoding="utf-8")):
            backend = _parse(statement[1], f"models.{path.stem}")
            found[backend.kind] = backend
    return found


def _parse(statement: str, module: str) -> Backend:
    call = ast.parse(statement, mode="eval").body
    assert isinstance(call, ast.Call)  # noqa: S101
    values: dict[str, Any] = {
        str(each.arg): partial(_call, module, each.value.id)
        if isinstance(each.value, ast.Name)
        else ast.literal_eval(each.value)
        for each in call.keywords
    }
    return Backend(**values)


def _call(module: str, function: str, *arguments: object) -> Any:
    return getattr(importlib.import_module(module), function)(*arguments)


def identify(entry: ModelEntry, settings: Settings) -> Identity:
    """Return the Identity of an entry without loading weights; errors as in ``load_scorer``."""
    function = _able(entry, "score", entry.backend.identify)
    return function(entry, settings_for(entry, settings))


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
    function = _able(entry, "score", entry.backend.load)
    return function(entry, settings_for(entry, settings))


def load_answerer(entry: ModelEntry, settings: Settings, budget: Budget) -> Answerer:
    """Load the answerer of an entry.

    Raises: the errors of ``load_scorer``, and
        NotMeasurable: models of this kind cannot answer questions.
        UsageError: the API key is missing, or the budget is in dollars but the entry has no prices.
    """
    load = _able(entry, "answer", entry.backend.load_answerer)
    return load(entry, settings_for(entry, settings), *([budget] if entry.backend.is_paid else []))


def load_generator(entry: ModelEntry, settings: Settings, budget: Budget) -> Generator:
    """Load the text generator of an entry; errors are those of ``load_answerer``."""
    load = _able(entry, "write", entry.backend.load_generator)
    return load(entry, settings_for(entry, settings), *([budget] if entry.backend.is_paid else []))


def identify_texts(entry: ModelEntry, settings: Settings) -> Any:
    """Return the facts that determine an entry's generated texts, without loading weights."""
    function = _able(entry, "write", entry.backend.identify_texts)
    return function(entry, settings_for(entry, settings))


def _able(entry: ModelEntry, ability: str, function: T | None) -> T:
    if function is None:
        default = f"a model of kind {entry.kind} cannot {ability}"
        raise NotMeasurable(f"{entry.name}: {entry.backend.cannot.get(ability, default)}")
    return function
