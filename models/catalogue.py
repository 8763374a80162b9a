"""The catalogue: the models that can be scored, and the known facts about their cutoffs.

Models come from four sources: the shipped files ``models/entries/*.yaml``,
``<home>/catalogue.yaml`` of the user (which has priority), the compressors, and reference models in
the models folder.

A cutoff is the last month whose text a model may have seen. If its precision is ``year`` or
``quarter``, the month is the last one of that year or quarter.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from core.errors import MalformedInput, UnknownName, UsageError, kind_and_reason
from core.month import Month
from core.plugins import list_folders
from core.settings import MAX_NAME_BYTES, Settings
from core.storage.store import Store
from models.backends import find_backend, kind_of, kind_of_suffix, list_backends
from models.choice import with_trust
from models.kinds import Backend
from models.similar_names import refuse_twin, suggest
from models.yaml_list import parse_yaml_list, read_yaml, shown

CONTROLS = tuple(
    f"control:{name}" for name in ("gzip", "zlib", "zstd", "xz", "brotli", "ppmd", "png", "flac")
)
REFERENCE_FILE = "tidemark.json"  # a file with the facts of a reference model, in its folder
_USER_FILE = "catalogue.yaml"
_SHIPPED = Path(__file__).with_name("entries")
_SERVER = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PIN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{16}|[0-9a-f]{12}(\+([0-9a-f]{40}|[0-9a-f]{16})){2}")
_Sourced = Literal["released", "parameters", "active_parameters", "licence", "context", "others"]
_Url = Annotated[str, Field(pattern=r"^https?://\S+$")]
_Count = Annotated[int | None, Field(gt=0, lt=2**63)]
_Price = Annotated[float | None, Field(ge=0, allow_inf_nan=False)]


def _month(value: object) -> Month | None:
    if value is None or isinstance(value, Month):
        return value
    try:
        return Month(str(value))
    except UsageError as error:
        raise ValueError(str(error)) from error


def _released(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}", value):
        released_in = _month(value)
        return released_in.first_day if released_in else None
    return value


@dataclass(frozen=True, config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))
class ModelEntry:
    """The known facts of a model.

    Attributes:
        kind: causal_lm, gguf (a ``.gguf`` file), rwkv (a ``.pth`` checkpoint), remote (a server of
            likelihoods), api (a server of answers), reference (trained by us) or control.
        location: hub id, folder, file, the server's address, or the compressor's name. For an API,
            the URL before ``/chat/completions``.
        revision: commit, tag or branch of the hub, or None for the hub's default. A remote model
            has its tokenizer's revision here.
        released: day of the release; the month's first day if only the month is known.
        cutoff: last month whose text the model may have seen, or None if not known.
        cutoff_provenance: stated by the model's makers, inferred from the dates of its training
            data, or planted (the model was trained by tidemark up to this month).
        cutoff_precision: precision with which the cutoff is known: month, quarter or year.
        active_parameters: number of weights used for one token, if not all.
        licence: short name as on the hub, such as apache-2.0.
        family: name that models of several sizes share, such as pythia, or None.
        role: model, for a subject of measurements; thermometer, if its cutoff lies before the
            months to measure; known-cutoff, if it was trained up to a date by design.
        context: longest sequence that the model supports, in tokens.
        sources: pages that state the facts, by fact; ``others`` for facts without their own page.
        tokenizer: hub id or folder of the tokenizer, for remote models only.
        served_name: name of the model on its server, or None for a remote server with one model.
        dialect: requests of a remote model's server: vllm, sglang or echo; None to ask the server.
        api_key: NAME of the setting ``TIDEMARK_API_KEYS__<NAME>`` with the API key, or None.
        dollars_per_million_input_tokens: price of input; set both prices or neither.
        dollars_per_million_output_tokens: price of output, reasoning included.
        max_output_tokens: maximum number of tokens of an API's response, reasoning included.
        trust: code, to run the code and read the pickles that a model brings, in a confined
            process; ``revision`` must then be a full commit, or the digest of the local folder.
    """

    name: Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=MAX_NAME_BYTES // 4)]
    kind: Annotated[str, AfterValidator(lambda kind: find_backend(kind).kind)] = "causal_lm"
    location: Annotated[str, Field(min_length=1)] = ""
    revision: str | None = None
    released: Annotated[dt.date | None, BeforeValidator(_released)] = None
    cutoff: Annotated[Month | None, BeforeValidator(_month)] = None
    cutoff_provenance: Literal["stated", "inferred", "planted"] | None = None
    cutoff_precision: Literal["month", "quarter", "year"] | None = None
    cutoff_url: _Url | None = None
    parameters: _Count = None
    active_parameters: _Count = None
    licence: Annotated[str | None, Field(min_length=1)] = None
    family: Annotated[str | None, Field(min_length=1)] = None
    role: Literal["model", "thermometer", "known-cutoff"] = "model"
    context: _Count = None
    is_chat: bool = False
    tokenizer: Annotated[str | None, Field(min_length=1)] = None
    served_name: Annotated[str | None, Field(min_length=1)] = None
    dialect: Literal["vllm", "sglang", "echo"] | None = None
    api_key: Annotated[str | None, Field(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$")] = None
    dollars_per_million_input_tokens: _Price = None
    dollars_per_million_output_tokens: _Price = None
    max_output_tokens: _Count = None
    trust: Literal["code"] | None = None
    sources: dict[_Sourced, _Url] = dataclasses.field(default_factory=dict, hash=False)
    notes: str = ""

    def __post_init__(self) -> None:
        given = [self.cutoff, self.cutoff_provenance, self.cutoff_precision]
        if None in given and given != [None] * 3:
            raise ValueError(
                "cutoff, cutoff_provenance and cutoff_precision belong together; "
                "give all three, or none where the cutoff is not known"
            )
        if self.cutoff_precision == "year" and self.cutoff and self.cutoff.first_day.month != 12:
            raise ValueError("with cutoff_precision year, cutoff must be the year's December")
        if self.cutoff_precision == "quarter" and self.cutoff and self.cutoff.first_day.month % 3:
            raise ValueError("with cutoff_precision quarter, cutoff must be its last month")
        self._check_fields()

    @property
    def is_trusted(self) -> bool:
        """True if the model's own code may be run, in a confined process."""
        return self.trust == "code"

    @property
    def backend(self) -> Backend:
        """The backend with the abilities of this kind of model."""
        return find_backend(self.kind)

    def _check_fields(self) -> None:
        """Raise ValueError for fields that do not suit the kind of model."""
        for other in list_backends():
            for name in set(other.fields) - set(self.backend.fields):
                if getattr(self, name) is not None:
                    kinds = [each.kind for each in list_backends() if name in each.fields]
                    raise ValueError(f"{name} is for models of kind {' or '.join(kinds)}")
        for name in self.backend.needs:
            if getattr(self, name) is None:
                raise ValueError(f"a model of kind {self.kind} needs its {name}")
        if self.trust and not _PIN.fullmatch(self.revision or ""):
            raise ValueError(
                "trust: code needs a pinned revision: the full commit (40 hex digits), or the "
                "digest of a local folder; `tidemark models add NAME LOCATION --trust code` pins it"
            )
        if self.backend.is_server and not _SERVER.fullmatch(self.location):
            raise ValueError(
                f"the location of a model of kind {self.kind} is its server's address, "
                "http://host:port, without user, password or query"
            )
        prices = (self.dollars_per_million_input_tokens, self.dollars_per_million_output_tokens)
        if prices.count(None) == 1:
            raise ValueError("give both prices, of input and of output tokens, or neither")


_ENTRY = TypeAdapter(ModelEntry)


def models_folder(settings: Settings) -> Path:
    """Return the folder of reference models: a local folder, because libraries read its files."""
    return (Path(settings.home) if settings.is_local else settings.scratch) / "models"


def list_models(settings: Settings) -> list[ModelEntry]:
    """Return catalogue entries, reference models and compressors; compressors come last.

    Raise MalformedInput, which names file and entry, if a catalogue has an invalid entry.
    """
    entries = {entry.name: entry for entry in list_shipped()}
    entries |= {entry.name: entry for entry in _list_references(models_folder(settings))}
    entries |= {entry.name: entry for entry in _read_user(settings)}
    entries |= {name: _control(name) for name in CONTROLS}
    return list(entries.values())


@cache
def list_shipped() -> tuple[ModelEntry, ...]:
    """Return the entries that come with tidemark; they never change."""
    folders = (_SHIPPED, *list_folders("entries"))
    files = [path for folder in folders for path in sorted(folder.glob("*.yaml"))]
    data = b"\n".join(path.read_bytes() for path in files)
    return tuple(parse_catalogue(data, str(_SHIPPED), is_own=True))


def find_model(name_or_folder: str, settings: Settings) -> ModelEntry:
    """Return the entry of a model, given by name, hub id, folder or file.

    A name in the catalogue has priority over a folder of the same name (use ``./name`` for the
    folder). A hub id that is not in the catalogue gives an entry without a cutoff. Trust and
    revision are those of ``models.yaml`` if it has them.

    Raises:
        UnknownName: there is no such model; the message suggests similar names.
        UsageError: this is a file of no kind of model, or the name looks like a known one.
        MalformedInput: a catalogue or ``models.yaml`` has an invalid entry.
    """
    entries = list_models(settings)
    by_key = {entry.location: entry for entry in reversed(entries)}
    by_key |= {entry.name: entry for entry in entries}
    entry = by_key.get(name_or_folder)
    if entry is None:
        entry = _find_unlisted(name_or_folder, entries)
        refuse_twin(entry.name, (known.name for known in entries))
    return with_trust(entry, settings)


def _find_unlisted(name_or_folder: str, entries: list[ModelEntry]) -> ModelEntry:
    """Return the entry of a folder, file or hub id; ``entries`` are those of the catalogues."""
    is_below_home = name_or_folder.startswith("~/")
    folder = Path(name_or_folder).expanduser() if is_below_home else Path(name_or_folder)
    if name_or_folder and folder.is_dir():
        return entry_of_folder(folder)
    kind = kind_of_suffix(folder.suffix)
    if kind and folder.is_file():
        file = folder.resolve()
        return ModelEntry(name=file.stem.strip(), kind=kind, location=str(file))
    if folder.is_file():
        parts = "config.json, the tokenizer and the weights"
        raise UsageError(f"{name_or_folder} is one file; give the folder that has {parts}")
    if _HUB_ID.fullmatch(name_or_folder):
        return ModelEntry(name=name_or_folder, location=name_or_folder)
    hint = f"`tidemark models list` shows all {len(entries)}; a folder must exist"
    places = {entry.name: entry.location for entry in entries}
    raise UnknownName("model", name_or_folder, suggest(name_or_folder, places), hint)


def add_model(entry: ModelEntry, settings: Settings, replace: bool = False) -> None:
    """Write an entry into the user's catalogue.

    Raises:
        UsageError: the name belongs to a compressor, looks like a known name, or exists and
            ``replace`` is False.
        MalformedInput: the user's catalogue is invalid; its file stays unchanged.
    """
    if not entry.backend.is_listed or entry.name in CONTROLS:
        raise UsageError(f"{entry.name!r}: compressors are found by themselves, not added")
    if entry.cutoff and entry.released and entry.cutoff.first_day > entry.released:
        raise UsageError(
            f"{entry.name}: the cutoff {entry.cutoff} is after the release on {entry.released}"
        )
    taken = {known.name for known in list_models(settings)}
    if entry.name in taken and not replace:
        raise UsageError(
            f"model {entry.name!r} is in the catalogue already; "
            "choose another name, or use --replace to put this entry in its place"
        )
    refuse_twin(entry.name, taken)
    kept = [known for known in _read_user(settings) if known.name != entry.name]
    records = [record_of(known) for known in (*kept, entry)]
    text = yaml.safe_dump(records, sort_keys=False, allow_unicode=True, width=100)
    Store(settings.home).write_bytes(_USER_FILE, text.encode())


def entry_of_folder(folder: Path) -> ModelEntry:
    """Return the entry of a model's folder, with its cutoff if tidemark trained it.

    Raise MalformedInput if tidemark.json is damaged, and UsageError for ``/``, which has no name.
    """
    folder = folder.resolve()
    path = folder / REFERENCE_FILE
    if not folder.name.strip():
        raise UsageError(f"{folder} has no name to use for a model; give a model's own folder")
    if not path.is_file():
        kind = kind_of(str(folder))
        return ModelEntry(name=folder.name.strip(), kind=kind, location=str(folder))
    try:
        record = json.loads(path.read_bytes())
        return ModelEntry(
            name=folder.name,
            kind="reference",
            location=str(folder),
            cutoff=Month(record["cutoff"]),
            cutoff_provenance=record["provenance"],
            cutoff_precision="month",
            parameters=record["num_parameters"],
            context=record["recipe"]["context"],
            notes=f"trained by tidemark with seed {record['seed']}",
        )
    except (OSError, ValueError, LookupError, TypeError, UsageError, RecursionError) as error:
        raise MalformedInput(
            f"{path} is not a file that tidemark wrote for a reference model "
            f"({kind_and_reason(error)}); "
            "bring it back from a backup, or move the folder away and train the model again"
        ) from error


def parse_catalogue(data: bytes, where: str, is_own: bool = False) -> list[ModelEntry]:
    """Parse a catalogue: a YAML list of entries with the keys of ModelEntry.

    ``is_own`` is that of ``parse_yaml_list``. Raise MalformedInput for other data, an unknown key,
    a value of a wrong type or a repeated name.
    """
    entries: dict[str, ModelEntry] = {}
    for number, record in enumerate(parse_yaml_list(data, where, is_own), start=1):
        entry = _parse_entry(record, f"{where}, entry {number}")
        if entry.name in entries:
            raise MalformedInput(f"{where}, entry {number}: the name {entry.name!r} occurs twice")
        entries[entry.name] = entry
    return list(entries.values())


def _parse_entry(record: object, where: str) -> ModelEntry:
    """Return the entry of a record; raise MalformedInput, with ``where``, if it is invalid."""
    if not isinstance(record, dict):
        raise MalformedInput(f"{where}: expected keys and values, got {shown(record)}")
    where = f"{where} ({shown(record.get('name', 'without a name'))})"
    listed = [backend.kind for backend in list_backends() if backend.is_listed]
    if record.get("kind", "causal_lm") not in listed or record.get("name") in CONTROLS:
        raise MalformedInput(
            f"{where}: only causal language models are listed in a catalogue, of the kinds "
            f"{', '.join(listed)}"
        )
    if not record.get("location"):
        raise MalformedInput(f"{where}: location (a hub id, folder, file or address) is missing")
    try:
        return make_entry(record)
    except UsageError as error:
        raise MalformedInput(f"{where}: {error}") from error


def make_entry(facts: Mapping[str, object]) -> ModelEntry:
    """Return an entry with these fields; raise UsageError, with the faults, if they are invalid."""
    try:
        return _ENTRY.validate_python(facts)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'entry'}: {problem['msg']}"
            for problem in error.errors(include_url=False)
        )
        raise UsageError(f"not a valid model: {problems}") from error


def _read_user(settings: Settings) -> list[ModelEntry]:
    store = Store(settings.home)
    if not store.exists(_USER_FILE):
        return []
    return list(_parse_user(read_yaml(store, _USER_FILE), store.url(_USER_FILE)))


@lru_cache(maxsize=8)  # a run looks up each of its models several times
def _parse_user(data: bytes, where: str) -> tuple[ModelEntry, ...]:
    return tuple(parse_catalogue(data, where))


def _list_references(folder: Path) -> Iterable[ModelEntry]:
    # A folder name with a leading dot marks a model that is still in training.
    paths = [path for path in folder.glob(f"*/{REFERENCE_FILE}") if path.parent.name[0] != "."]
    return [entry_of_folder(path.parent) for path in sorted(paths)]


def _control(name: str) -> ModelEntry:
    return ModelEntry(
        name=name,
        kind="control",
        location=name.removeprefix("control:"),
        notes="a compressor: no cutoff, cannot be stale",
    )


def names_repository(location: str) -> bool:
    """Return True if a location has the form of a repository of the hub, ``owner/name``."""
    return _HUB_ID.fullmatch(location) is not None


def record_of(entry: ModelEntry) -> dict[str, object]:
    """Return the facts of an entry that are not the default, as files of entries have them."""
    record: dict[str, object] = {}
    for field in dataclasses.fields(entry):
        value = getattr(entry, field.name)
        if value != field.default and value != {}:
            record[field.name] = str(value) if isinstance(value, Month) else value
    return record
