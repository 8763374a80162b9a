"""The models that runs use, and how each is loaded: ``models.yaml`` in the data root.

A list of names, or of mappings with the name of a model and its options::

    - control:zstd
    - model: gpt2
      dtype: float32
    - tag:small-open

``tag:`` and a tag choose all models of the catalogue that have it::

    tiny, small, medium, large   below 0.5, 2 and 8 billion parameters, and above
    open                         the licence is one of ``OPEN_LICENCES``
    tiny-open, small-open, …     both
    thermometer, known-cutoff    the role
    pythia, …                    the family

A fact that is not known gives no tag. Models that cost money have no tags, and controls neither.
A setting that is given, such as TIDEMARK_MODELS or TIDEMARK_DTYPE, has priority over the file. The
file has priority over the settings' defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, model_validator

from core.errors import MalformedInput, UsageError, did_you_mean
from core.settings import MAX_NAME_BYTES, Settings
from core.storage.store import Store
from models.yaml_list import parse_yaml_list, read_yaml, shown

if TYPE_CHECKING:  # prevents a circular import: catalogue imports backends, which imports this
    from models.catalogue import ModelEntry

CHOICE_FILE = "models.yaml"
PREFIX = "tag:"
# As on the hub; licences that everybody may use the weights under, for any purpose.
OPEN_LICENCES = {"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0"}
_SIZES = (("tiny", 5e8), ("small", 2e9), ("medium", 8e9), ("large", float("inf")))


class Choice(BaseModel):
    """A chosen model; a field that is None is as the settings say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=MAX_NAME_BYTES)]  # or a tag
    device: Annotated[str | None, Field(pattern=r"^(auto|cpu|cuda(:\d{1,3})?)$")] = None
    dtype: Literal["auto", "float64", "float32", "bfloat16", "float16"] | None = None
    batch_tokens: Annotated[StrictInt | None, Field(gt=0, lt=2**31)] = None
    trust: Literal["code"] | None = None
    revision: Annotated[str | None, Field(max_length=MAX_NAME_BYTES)] = None

    @model_validator(mode="after")
    def _name_what_is_trusted(self) -> Self:
        if self.model.startswith(PREFIX) and (self.trust or self.revision):
            raise ValueError("trust and revision are those of one model; name the model")
        return self

    def options(self) -> dict[str, object]:
        """Return the options of loading that are not None, by the name of their setting."""
        return self.model_dump(include={"device", "dtype", "batch_tokens"}, exclude_none=True)


def chosen_models(settings: Settings) -> tuple[str, ...]:
    """Return the names of the models that runs use.

    These are the models of TIDEMARK_MODELS if given, else of the file, else the default. A tag
    stands for all models that have it.

    Raise MalformedInput if the file is invalid, and UsageError if no model has a tag.
    """
    named = tuple(choice.model for choice in _read(settings))
    named = settings.models if "models" in settings.model_fields_set or not named else named
    if not any(name.startswith(PREFIX) for name in named):
        return named
    from models.catalogue import list_models  # it imports this module

    entries = list_models(settings)
    chosen = list[str]()
    for name in named:
        found = models_with(name.removeprefix(PREFIX), entries) if name.startswith(PREFIX) else ()
        chosen += [entry.name for entry in found] or [name]
    return tuple(dict.fromkeys(chosen))


def settings_for(entry: ModelEntry, settings: Settings) -> Settings:
    """Return the settings with a model's options in the file, except settings that are given."""
    choice = _choice_of(entry, settings)
    if choice is None:
        return settings
    names = choice.options().keys() - settings.model_fields_set
    return settings.model_copy(update={name: getattr(choice, name) for name in names})


def with_trust(entry: ModelEntry, settings: Settings) -> ModelEntry:
    """Return an entry with the file's ``trust`` and ``revision``, where the file has them.

    Raise MalformedInput if the file is invalid, or trusts a model whose revision is not pinned.
    """
    choice = _choice_of(entry, settings)
    if choice is None:
        return entry
    changed = choice.model_dump(include={"trust", "revision"}, exclude_none=True)
    try:
        return replace(entry, **changed)
    except ValidationError as error:
        message = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise MalformedInput(
            f"{Store(settings.home).url(CHOICE_FILE)}: {choice.model}: {message}"
        ) from error


def _choice_of(entry: ModelEntry, settings: Settings) -> Choice | None:
    """Return the choice of a model by its name or location; else the first by one of its tags."""
    choices = _read(settings)
    for choice in choices:
        if choice.model in (entry.name, entry.location):
            return choice
    tags = {f"{PREFIX}{tag}" for tag in tags_of(entry)}
    for choice in choices:
        if choice.model in tags:
            return choice
    return None


def _read(settings: Settings) -> tuple[Choice, ...]:
    store = Store(settings.home)
    if not store.exists(CHOICE_FILE):
        return ()
    return parse_choices(read_yaml(store, CHOICE_FILE), store.url(CHOICE_FILE))


@cache
def parse_choices(data: bytes, where: str) -> tuple[Choice, ...]:
    """Parse the file's bytes; raise MalformedInput, with file and entry, if they are invalid."""
    choices: dict[str, Choice] = {}
    for number, record in enumerate(parse_yaml_list(data, where), start=1):
        choice = _parse(record, f"{where}, entry {number}")
        if choice.model in choices:
            raise MalformedInput(
                f"{where}, entry {number}: {choice.model} occurs twice; delete one of the entries"
            )
        choices[choice.model] = choice
    return tuple(choices.values())


def _parse(record: object, where: str) -> Choice:
    given = {"model": record} if isinstance(record, str) else record
    if not isinstance(given, dict):
        raise MalformedInput(
            f"{where}: expected the name of a model, or a mapping with `model`, got {shown(given)}"
        )
    try:
        return Choice.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(
            f"{shown('.'.join(map(str, problem['loc'])))}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        )
        raise MalformedInput(
            f"{where}: {problems}; the keys are {', '.join(Choice.model_fields)}"
        ) from error


def tags_of(entry: ModelEntry) -> tuple[str, ...]:
    """Return the tags of a model: size, licence, both, role and family, as far as known."""
    if entry.backend.is_paid or entry.backend.is_control:
        return ()
    tags = []
    if entry.parameters is not None:
        tags.append(next(name for name, end in _SIZES if entry.parameters < end))
    if entry.licence in OPEN_LICENCES:
        tags += ["open", *(f"{size}-open" for size in tags)]
    if entry.role != "model":
        tags.append(entry.role)
    if entry.family:
        tags.append(entry.family)
    return tuple(tags)


def models_with(tag: str, entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """Return the models that have a tag; raise UsageError, with the known tags, without any."""
    found = [entry for entry in entries if tag in tags_of(entry)]
    if found:
        return found
    known = sorted({known for entry in entries for known in tags_of(entry)})
    raise UsageError(
        f"no model has the tag {tag!r}; {did_you_mean(tag, known)}the tags are {', '.join(known)}"
    )
