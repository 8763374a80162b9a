"""How fast models score here: from the records of cells, else from a probe of some seconds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from core.cell_record import read_cell_record
from core.cells import Cell
from core.corpus import Seal, read_documents, read_seal
from core.errors import TidemarkError
from core.settings import Settings
from core.storage import Store
from models.load import load_scorer
from models.machine import describe_cpu
from models.protocols import get_protocol
from models.tally import Tally
from tasks.cell_times import fit
from tasks.run_plan import PlannedModel
from tasks.scoring import plan_scoring

MAX_RECORDS = 24  # that are read of one model; seconds of its other cells are much alike
PROBE_S = 2.0
_COLUMNS = ["document_id", "source", "month", "text"]
_WORDS = (
    *("the", "of", "and", "to", "in", "that", "was", "for", "with", "on", "as", "by", "at", "from"),
    *("river", "city", "council", "report", "year", "people", "house", "light", "after", "water"),
    *("school", "paper", "market", "music", "history", "winter", "station", "bridge", "language"),
)


@dataclass(frozen=True)
class Rate:
    """What a cell of a model takes, and on what ground it is said.

    Attributes:
        cell_s: seconds of a cell, however short.
        byte_s: seconds more for a byte of text.
        basis: where the figures are from.
        load_s: seconds to load the model; None where only cells were measured.
        is_cuda: whether it computes on a GPU.
    """

    cell_s: float
    byte_s: float
    basis: str
    load_s: float | None = None
    is_cuda: bool = False

    def seconds(self, num_bytes: float) -> float:
        """Return what a cell of so much text takes."""
        return self.cell_s + self.byte_s * num_bytes


def rate_of(model: PlannedModel, settings: Settings) -> Rate:
    """Measure a model: from its cells on this device, else by loading it and scoring a little.

    Raises:
        TidemarkError: it can neither be loaded nor was it measured.
    """
    return _recorded(model, settings) or _probe(model, settings)


def _recorded(model: PlannedModel, settings: Settings) -> Rate | None:
    """From the cells that were scored on the device, and in the dtype, of the settings."""
    here = _conditions(model, settings)
    points, is_cuda = [], False
    for cell in _spread(model.done or _elsewhere(model, settings)):
        record = read_cell_record(Store(settings.home), cell)
        seal = read_seal(Store(settings.home), cell.partition)
        if record is None or seal is None or seal.digest != cell.partition_digest:
            continue
        if here in (None, (record.device, record.dtype)):
            points.append((float(seal.num_bytes), record.seconds))
            is_cuda = record.device.startswith("cuda")
    if not points:
        return None
    return Rate(*fit(points), basis=f"measured: {len(points)} cells", is_cuda=is_cuda)


def _conditions(model: PlannedModel, settings: Settings) -> tuple[str, str] | None:
    if model.entry.kind == "control":
        return describe_cpu(), ""
    if model.entry.kind == "remote":  # on its server's device, whatever that is
        return None
    from models.canary import current_conditions

    device, dtype, _ = current_conditions(settings)
    return device, dtype


def _elsewhere(model: PlannedModel, settings: Settings) -> tuple[Cell, ...]:
    """Cells of other months and sources than the plan's."""
    return plan_scoring(model.asked, [settings.protocol], None, None, settings).done


def _spread(cells: Sequence[Cell]) -> Sequence[Cell]:
    step = max(1, len(cells) // MAX_RECORDS)
    return cells[::step][:MAX_RECORDS]


def _probe(model: PlannedModel, settings: Settings) -> Rate:
    if model.entry.kind == "remote":
        raise TidemarkError("no cell of it was measured, and a probe would ask its server")
    protocol = get_protocol(settings.protocol)
    began = time.perf_counter()
    scorer = load_scorer(model.entry, settings)
    load_s = time.perf_counter() - began
    seal = _sample_of(model, settings)
    source = _sealed(seal, settings) if seal else _generated()
    list(scorer.score_together([next(_generated())], [protocol], [Tally()]))  # it warms up
    sizes: list[int] = []
    began = time.perf_counter()
    for _ in scorer.score_together(_while_time_lasts(source, sizes), [protocol], [Tally()]):
        pass
    seconds = time.perf_counter() - began
    is_cuda = scorer.facts.device.startswith("cuda")
    text = f"of {seal.partition}" if seal else "of generated text"
    basis = f"probe: {sum(sizes) / 1e3:,.0f} kB {text} in {seconds:.1f} s"
    return Rate(0.0, seconds / max(1, sum(sizes)), basis, load_s, is_cuda)


def _sample_of(model: PlannedModel, settings: Settings) -> Seal | None:
    store = Store(settings.home)
    seals = (read_seal(store, cell.partition) for cell in model.pending)
    return next((seal for seal in seals if seal and seal.is_text), None)


def _sealed(seal: Seal, settings: Settings) -> Iterator[pa.RecordBatch]:
    return read_documents(Store(settings.home), seal, columns=_COLUMNS, batch_rows=16)


def _while_time_lasts(
    batches: Iterator[pa.RecordBatch], sizes: list[int]
) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and their bytes to ``sizes``, until the probe has taken its time."""
    deadline = time.perf_counter() + PROBE_S
    for batch in batches:
        sizes.append(sum(len(text.encode()) for text in batch["text"].to_pylist()))
        yield batch
        if time.perf_counter() > deadline:
            return


def _generated() -> Iterator[pa.RecordBatch]:
    """Some 100 kB of words, for where no text is sealed."""
    draw = random.Random(0)  # noqa: S311 - no secret
    for number in range(16):
        texts = [" ".join(draw.choices(_WORDS, k=150)) for _ in range(8)]
        yield pa.record_batch(
            {
                "document_id": [f"probe-{number}-{index}" for index in range(8)],
                "source": ["probe"] * 8,
                "month": pa.nulls(8, pa.date32()),
                "text": pa.array(texts, pa.large_string()),
            }
        )
