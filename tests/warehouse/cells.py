import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq

from core.cells.losses import Cell
from core.cells.record import ByteClass, CellRecord, Milestone, TokenizerFacts
from core.corpus.partition import Partition
from core.month import Month
from core.storage.store import Store
from warehouse.land.losses import Landed, Warehouse

JANUARY = Partition("news", Month("2024-01"))
CELL = Cell("org/model", "r1", JANUARY, "digest-1", "default", "scoring-1")
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
RECORD = CellRecord(
    scored_at=NOON,
    device="cuda: NVIDIA H200",
    dtype="bfloat16",
    batch_tokens=4096,
    context=1024,
    versions={"torch": "2.13.0", "tidemark": "0.1.0"},
    seconds=2.5,
    num_tokens_read=123,
    peak_memory_bytes=2**33,
    energy_joules=None,
    active_parameters=10**9,
    matmul_flops=6e14,
    num_lossy_documents=1,
    tokenizer=TokenizerFacts(vocabulary_size=8192, start_token=None, has_byte_tokens=True),
    milestones=(
        Milestone(milestone=10, num_documents=2, nll_nats=3.5, num_chars=60, num_bytes=61),
        Milestone(milestone=30, num_documents=1, nll_nats=4.5, num_chars=90, num_bytes=92),
    ),
    byte_classes=(
        ByteClass(byte_class="digits", nll_nats=3.5, num_bytes=20),
        ByteClass(byte_class="words", nll_nats=4.0, num_bytes=80),
    ),
)


def land_scored(warehouse: Warehouse, store: Store, cell: Cell, losses: pa.Table) -> Landed:
    with store.writing(cell.path) as staged:
        pq.write_table(losses, staged.path)
    landed = warehouse.land_cells([cell])
    for fault in landed.faults:
        raise fault
    return landed
