"""Find the pending and failed cells of losses by the names of files.

Neither weights nor loss files are read, so that machines without the models can do this. The name
of a file has the protocol and the digest of the text. A cell that was computed with another dtype,
or by another version of the scorer, therefore counts as done.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from statistics import median
from typing import NamedTuple

from core.cells.failures import SUFFIX, CellFailure, read_failure, stem_of_model
from core.cells.losses import Cell, list_losses
from core.cells.record import median_seconds
from core.corpus.partition import Seal
from core.corpus.selection import select_sealed
from core.errors import TidemarkError, UnknownName, UsageError
from core.month import Period
from core.settings import Settings
from core.storage.claims import list_claimed
from core.storage.store import Store, name_of_part
from instruments.driver import Backlog
from models.catalogue import find_model
from models.scoring.protocols import get_protocol

_TOKEN_BYTES = 4  # assumed bytes of text per token; equal for all models, as only ratios count
Text = tuple[str, str]  # folder of the partition, first characters of the text's digest


class CellName(NamedTuple):
    """Model, protocol and text of a cell, from the path of its losses or its failure record."""

    model: str
    protocol: str
    text: Text


@dataclass
class Left:
    """The cells of one model that are pending, and those that failed."""

    name: str  # of the model in the catalogue
    pending: dict[Text, Seal] = field(default_factory=dict)
    claimed: set[Text] = field(default_factory=set)  # pending cells that processes compute
    failed: list[CellFailure] = field(default_factory=list)


def name_of(model: str, settings: Settings) -> str:
    """Return the catalogue name of a model, whose files may be on another machine."""
    try:
        return find_model(model, settings).name
    except TidemarkError:
        return PurePosixPath(model).name


def list_left(
    models: Sequence[str],
    sources: Sequence[str] | None,
    months: Sequence[Period] | None,
    run: str,
    settings: Settings,
) -> dict[str, Left]:
    """Return each model's pending and failed cells on sealed partitions of sources and months.

    ``None`` means all. A cell counts as failed if it failed in this run, or would fail again in the
    same way. Cells that failed otherwise are pending.
    """
    store = Store(settings.home)
    chosen = list(sources) if sources is not None else None
    seals = {
        sealed_text(seal): seal
        for seal in select_sealed(store, chosen, months, settings.corpus_as_of)
    }
    protocol = get_protocol(settings.protocol).name
    files = list_files(store, protocol, seals)
    claimed = _list_claimed(store, protocol)
    found = {}
    for model in dict.fromkeys(models):
        name = name_of(model, settings)
        left = Left(name)
        # A model that could not be planned is recorded by the name of the request.
        for each in {name, model}:
            stem = stem_of_model(Cell.ROOT, each)
            broken = read_failure(store, stem) if files[each].is_broken else None
            if broken and broken.protocol in (None, protocol) and broken.is_final(run):
                left.failed.append(broken)
        _add_cells(left, seals, files[name], run, store)
        left.claimed = claimed[name] & left.pending.keys()
        found[model] = left
    return found


def _add_cells(
    left: Left, seals: Mapping[Text, Seal], files: ModelFiles, run: str, store: Store
) -> None:
    """Add the failed and the pending cells of a model to ``left``.

    A model that failed as a whole has no pending cells.
    """
    is_broken = bool(left.failed)
    for key, seal in seals.items():
        if key in files.done:
            continue
        record = read_failure(store, files.failed[key]) if key in files.failed else None
        if record is not None and record.is_final(run):
            left.failed.append(record)
        elif not is_broken:
            left.pending[key] = seal


@dataclass
class ModelFiles:
    """The files of one model under one protocol."""

    done: dict[Text, str] = field(default_factory=dict)  # paths of losses
    failed: dict[Text, str] = field(default_factory=dict)  # stems of records of failures
    is_broken: bool = False  # True if the model has a record of a failure


def list_files(store: Store, protocol: str, texts: Iterable[Text] = ()) -> dict[str, ModelFiles]:
    """Return the files of each model. If all ``texts`` are of one month, list only its folders."""
    months = {folder.rpartition("/")[2] for folder, _ in texts}
    month = months.pop() if len(months) == 1 else "month=*"
    found: dict[str, ModelFiles] = defaultdict(ModelFiles)
    for path in store.list(f"{Cell.ROOT}/model=*/source=*/{month}/*"):
        name = read_name(path)
        if name is None or name.protocol != protocol:
            continue
        if path.endswith(SUFFIX):
            found[name.model].failed[name.text] = path.removesuffix(SUFFIX)
        elif path.endswith(".parquet"):
            found[name.model].done[name.text] = path
    for path in store.list(f"{Cell.ROOT}/model=*/model{SUFFIX}"):
        found[name_of_part(path.split("/")[1].removeprefix("model="))].is_broken = True
    return found


def _list_claimed(store: Store, protocol: str) -> dict[str, set[Text]]:
    """Return the texts whose cells under a protocol are claimed by processes, by model."""
    found: dict[str, set[Text]] = defaultdict(set)
    for path in list_claimed(store):
        name = read_name(path)
        if name is not None and name.protocol == protocol:
            found[name.model].add(name.text)
    return found


def sealed_text(seal: Seal) -> Text:
    """Return the parts that identify a sealed text in the paths of its cells."""
    return (seal.partition.path.removeprefix("corpus/"), seal.digest[:12])


def read_name(path: str) -> CellName | None:
    """Parse the path of a loss file or failure record (see ``Cell``); None for other paths."""
    root, _, rest = path.partition("/")
    model, _, rest = rest.partition("/")
    folder, _, file = rest.rpartition("/")
    # <protocol>-<revision>-<digest>-<scoring>; protocol and revision may have hyphens
    parts = file.removesuffix(SUFFIX).removesuffix(".parquet").rsplit("-", 2)
    protocol = _protocol_of(parts[0])
    if root != Cell.ROOT or len(parts) != 3 or not protocol:
        return None
    return CellName(name_of_part(model.removeprefix("model=")), protocol, (folder, parts[1]))


@cache
def _protocol_of(beginning: str) -> str:
    """Return the protocol of ``<protocol>-<revision>``, or an empty text."""
    parts = beginning.split("-")
    for number in range(len(parts) - 1, 0, -1):  # names have hyphens: the longest one first
        with contextlib.suppress(UsageError):
            return get_protocol(name_of_part("-".join(parts[:number]))).name
    return ""


def holes_of(left: Mapping[str, Left]) -> list[str]:
    """Return each failed and each pending cell, with the reason."""
    holes = []
    for each in left.values():
        holes += [f"score {failure}" for failure in each.failed]
        for seal in each.pending.values():
            holes.append(f"score {each.name} on {seal.partition}: no process has done it")
    return holes


def backlogs_of(
    sources: Sequence[str] | None, months: Sequence[Period] | None, run: str, settings: Settings
) -> Callable[[Sequence[str]], dict[str, Backlog]]:
    """Return a function that estimates the work left of models; see ``WorkRequest.backlog``.

    A token is expected to take the median of the model's cells so far, which are read once. A model
    without such cells is expected to take as long per parameter as the others.
    """

    @cache
    def time_of(name: str) -> float | None:
        store = Store(settings.home)
        paths = sorted(list_losses(store, name))
        records = [f"{path.removesuffix('.parquet')}.json" for path in paths]
        return median_seconds(store, records, per_token=True)

    def backlogs(models: Sequence[str]) -> dict[str, Backlog]:
        """Return the unclaimed cells of each model, with the estimated time of one process."""
        found = list_left(models, sources, months, run, settings)
        free: dict[str, dict[Text, Seal]] = {}
        for model, left in found.items():
            keys = left.pending.keys() - left.claimed
            if keys:
                free[model] = {key: left.pending[key] for key in keys}
        sizes = {model: _size_of(model, settings) for model in free}
        token_s = {model: time_of(found[model].name) for model in free}
        # Models without a timed cell get the median time per token and parameter of the others.
        rates = [seconds / sizes[model] for model, seconds in token_s.items() if seconds]
        rate = median(rates) if rates else 1.0
        estimated = {}
        for model, seals in free.items():
            num_tokens = sum(seal.num_bytes for seal in seals.values()) / _TOKEN_BYTES
            seconds = (token_s[model] or rate * sizes[model]) * num_tokens
            estimated[model] = Backlog(frozenset(map("/".join, seals)), seconds)
        return estimated

    return backlogs


def _size_of(model: str, settings: Settings) -> float:
    """Return the number of parameters used per token, or 1 if unknown."""
    with contextlib.suppress(UnknownName):  # planning reports the error
        entry = find_model(model, settings)
        return float(entry.active_parameters or entry.parameters or 1)
    return 1.0
