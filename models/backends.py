"""Backends: the abilities of each kind of model, stated by one file of this folder each.

The file has one statement::

    BACKEND = Backend(kind="rwkv", on_device=True, identify=identify_rwkv, load=load_rwkv)

Its values are literals or names of functions in the file. So the statement is read without
importing the file, whose libraries take seconds. Calling a function imports the file.
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

if TYPE_CHECKING:  # catalogue imports this module
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
        on_device: True if it computes on the device and in the dtype of the settings.
        from_hub: True if its files may come from the hub.
        is_listed: True if catalogue files may list its entries.
        is_control: True if it measures the text alone and so has no cutoff.
        is_server: True if the location of an entry is a server's address.
        is_paid: True if each request may cost money.
        codes: True if the codec can use its probabilities.
        answers_together: number of prompts that its server processes at once; 0 without a server.
        fields: optional entry fields that this backend reads.
        needs: subset of ``fields`` that an entry must set.
        cannot: by missing ability (``score``, ``answer``, ``write``), a reason and an alternative.
        identify: returns the Identity of an entry without loading weights.
        load: returns the scorer of an entry; None if the backend gives no losses.
        load_answerer: returns the answerer; None if it cannot answer. A paid backend's function
            takes the budget of the run, too; so does ``load_generator``.
        load_generator: returns the generator; None if the backend cannot write texts.
        identify_texts: returns the identity of generated texts without loading weights.
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
    def scores(self) -> bool:
        """True if it can compute losses of texts."""
        return self.load is not None

    @property
    def answers(self) -> bool:
        """True if it can answer forecasting questions."""
        return self.load_answerer is not None

    @property
    def writes(self) -> bool:
        """True if it can continue texts."""
        return self.load_generator is not None


def list_backends() -> list[Backend]:
    """Return all backends, ordered by file name."""
    return list(_read_folders(tuple(models.__path__)).values())


def find_backend(kind: str) -> Backend:
    """Return the backend of a kind; raise ValueError, listing the known kinds, if there is none."""
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
    """Return the identity of an entry's cells without weights; errors as ``load_scorer``."""
    return _able(entry, "score", entry.backend.identify)(entry, settings)


def load_scorer(entry: ModelEntry, settings: Settings) -> Scorer:
    """Load the scorer of an entry.

    Raises:
        ModelLoadError: weights or tokenizer are missing, unsafe or broken.
        NotMeasurable: not a causal language model, no fast tokenizer, a server that omits
            likelihoods of tokens, or a backend that gives no losses.
        ModelError: a remote model's server cannot be reached, or fails.
        UnknownName: no such compressor.
        UsageError: the machine lacks the device, or torch lacks the dtype.
    """
    return _able(entry, "score", entry.backend.load)(entry, settings)


def load_answerer(entry: ModelEntry, settings: Settings, budget: Budget) -> Answerer:
    """Load the answerer of an entry.

    Raises: as ``load_scorer``, and
        NotMeasurable: the backend does not answer.
        UsageError: an API's key is missing, or the budget is in money and the entry has no prices.
    """
    load = _able(entry, "answer", entry.backend.load_answerer)
    return load(entry, settings, *([budget] if entry.backend.is_paid else []))


def load_generator(entry: ModelEntry, settings: Settings, budget: Budget) -> Generator:
    """Load the generator of an entry; arguments and errors as for ``load_answerer``."""
    load = _able(entry, "write", entry.backend.load_generator)
    return load(entry, settings, *([budget] if entry.backend.is_paid else []))


def identify_texts(entry: ModelEntry, settings: Settings) -> Any:
    """Return the identity of an entry's texts without weights; errors as ``load_generator``."""
    return _able(entry, "write", entry.backend.identify_texts)(entry, settings)


def _able(entry: ModelEntry, ability: str, function: T | None) -> T:
    if function is None:
        default = f"a model of kind {entry.kind} cannot {ability}"
        raise NotMeasurable(f"{entry.name}: {entry.backend.cannot.get(ability, default)}")
    return function
