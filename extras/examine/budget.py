"""Budget of an examination: its readers and their speed."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from core.corpus.partition import Seal, read_documents
from core.errors import ModelError, ModelLoadError
from core.settings import Settings
from core.storage.store import Store
from instruments.models import held, scorer_of
from models.backends import identify
from models.catalogue import ModelEntry, list_models
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Scorer, Tally
from models.weights.files import WEIGHT_FILES, folder_digest
from models.weights.hub import local_folder

COMPRESSORS = ("control:zstd", "control:xz")
PROTOCOL = "default"
SHARE = 0.7  # of the minutes that are planned; loading, landing and publishing take the rest
_PROBE_CHARS = 8 * 2**10


def find_companions(
    entry: ModelEntry, parameters: int | None, settings: Settings, number: int
) -> list[ModelEntry]:
    """Return language models of the catalogue whose files are here: controls for this one.

    Thermometers come first, then models of known cutoff, then others, the nearest in size first.
    Copies of this model are left out: they feel the same of each month.
    """
    found: list[ModelEntry] = []
    for other in list_models(settings):
        is_same = other.name == entry.name or other.location == entry.location
        has_weights = not (other.backend.is_control or other.backend.is_server)
        if not is_same and has_weights and local_folder(other) is not None:
            found.append(other)

    def place(other: ModelEntry) -> tuple[bool, bool, float, str]:
        is_thermometer = other.role == "thermometer"
        return (
            not is_thermometer,
            other.cutoff is None,
            _distance(parameters, other.parameters),
            other.name,
        )

    originals = (other for other in sorted(found, key=place) if not _is_copy(other, entry))
    return list(itertools.islice(originals, number))


def _is_copy(one: ModelEntry, other: ModelEntry) -> bool:
    """Return True if two models have folders with equal configuration and weights."""
    folders = [local_folder(one), local_folder(other)]
    try:
        digests = [folder_digest(each, WEIGHT_FILES) for each in folders if each is not None]
    except ModelLoadError:
        return False  # scoring will tell what is wrong
    return len(digests) == len(folders) and digests[0] == digests[1]


def _distance(one: int | None, other: int | None) -> float:
    """Return the distance of two sizes in log parameters; infinite if one is unknown."""
    if one is None or other is None:
        return math.inf
    return abs(math.log(one / other))


@dataclass(frozen=True)
class Speed:
    """Facts that loading a model and a first pass show."""

    bytes_per_second: float
    parameters: int | None  # that a token is multiplied by; None if unknown
    context: int | None  # tokens of a window
    num_lossy_documents: int  # documents of the probe that tokens do not restore


def measure_speed(entry: ModelEntry, seal: Seal, settings: Settings) -> Speed:
    """Load a model and score the beginnings of a partition's documents, to see how fast it is.

    They are scored twice, since a first pass also sets up the libraries.

    Raises:
        ModelError: the model cannot be loaded or measured, or gives no finite loss.
    """
    probe, num_bytes = _probe(seal, Store(settings.home))
    revision = identify(entry, settings).revision
    with held.hold(scorer_of, entry, revision, settings) as scorer:
        _score(scorer, probe)
        started = time.monotonic()
        reasons, tally = _score(scorer, probe)
        seconds = max(time.monotonic() - started, 1e-3)
        parameters = scorer.facts.active_parameters
    if reasons and None not in reasons:
        raise ModelError(f"{entry.name} gives no loss of any text ({reasons[0]})")
    return Speed(num_bytes / seconds, parameters, tally.context, tally.num_lossy_documents)


def _score(scorer: Scorer, probe: pa.RecordBatch) -> tuple[list[str | None], Tally]:
    tally = Tally()
    tables = scorer.score_together(iter([probe]), [get_protocol(PROTOCOL)], [tally])
    reasons = [reason for [table] in tables for reason in table["reason"].to_pylist()]
    return reasons, tally


def _probe(seal: Seal, store: Store) -> tuple[pa.RecordBatch, int]:
    """Return the beginnings of documents, _PROBE_CHARS in all, and their size in bytes."""
    first = next(read_documents(store, seal, columns=["document_id", "source", "month", "text"]))
    left = _PROBE_CHARS
    texts: list[str] = []
    for text in first["text"].to_pylist():
        texts.append(text[:left])
        left -= len(texts[-1])
        if left <= 0:
            break
    rows = first.slice(0, len(texts)).drop_columns(["text"])
    probe = rows.append_column("text", pa.array(texts, pa.large_string()))
    return probe, sum(len(text.encode()) for text in texts)


def bytes_within(minutes: float, speed: Speed, companions: Sequence[ModelEntry]) -> int:
    """Return how many bytes a model and its companions can read in a time.

    A companion of known size takes time by its parameters, another one as much as the model.
    """
    cost = 1.0
    for other in companions:
        if speed.parameters is None or other.parameters is None:
            cost += 1
        else:
            cost += other.parameters / speed.parameters
    return int(SHARE * 60 * minutes * speed.bytes_per_second / cost)
