"""Losses of single tokens: of few documents per cell, in one Parquet file (schema TOKEN_LOSSES).

    tokens/model=<m>/source=<s>/month=<YYYY-MM>/<name of the loss file>.parquet

The documents are chosen by their ids and licences alone, so all models have the same ones. The file
is written before the cell's losses. See docs/adr/0038-token-losses.md.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.cells.losses import Cell
from core.corpus.partition import Seal, read_documents
from core.errors import StorageError
from core.schemas.tables import TOKEN_LOSSES
from core.storage.store import Store

ROOT = "tokens"
_HALF_ID = 16  # number of hexadecimal digits in half of a document's id
MAX_BYTES = 2**16  # longer texts are not chosen, as they do not fit on one page
# SPDX ids and addresses of licences that let others pass on and change a text, also for money.
_OPEN = re.compile(
    r"(?i)CC0-1\.0|CC-BY(-SA)?-[1-4]\.\d(-(?!NC|ND)[A-Z]{2,4})?"
    r"|MIT|MIT-0|BSD-[123]-Clause|0BSD|ISC|Zlib"
    r"|Apache-2\.0|Unlicense|OGL-UK-[123]\.0|ODC-By-1\.0|ODbL-1\.0|PDDL-1\.0|etalab-2\.0"
    r"|LicenseRef-public-domain|LicenseRef-tidemark-simulator"
    r"|https?://creativecommons\.org/(licenses/by(-sa)?|publicdomain/(zero|mark))/[\d.]+/?"
)


def is_open(licence: str) -> bool:
    """Return True if each part of a licence (joined by AND) is known as open."""
    return all(_OPEN.fullmatch(part.strip()) for part in licence.split(" AND "))


def choose_documents(store: Store, seal: Seal, number: int) -> frozenset[str]:
    """Return ids of at most ``number`` texts of a partition with an open licence.

    The ids with the lowest second half are chosen. Ids are hashes, so this choice is random.
    """
    if not seal.is_text or number == 0:
        return frozenset()
    columns = ["document_id", "licence", "num_bytes"]
    batches = list(read_documents(store, seal, columns=columns, batch_rows=8192))
    if not batches:
        return frozenset()
    table = pa.Table.from_batches(batches)
    licences = filter(is_open, pc.unique(table["licence"]).to_pylist())
    is_usable = pc.and_(
        pc.is_in(table["licence"], pa.array(licences, pa.string())),
        pc.less_equal(table["num_bytes"], MAX_BYTES),
    )
    ids = table.filter(is_usable)["document_id"]
    halves = pa.table({"half": pc.utf8_slice_codeunits(ids, _HALF_ID), "id": ids})
    return frozenset(halves.sort_by("half")["id"][:number].to_pylist())


def path_of_tokens(cell: Cell) -> str:
    """Return the path of a cell's token losses, relative to the data root."""
    return f"{ROOT}/{cell.path.partition('/')[2]}"


def to_parquet(table: pa.Table, facts: bytes | None = None) -> bytes:
    """Return token losses as Parquet; ``facts`` is JSON for key ``tidemark`` of the metadata."""
    if facts is not None:
        table = table.replace_schema_metadata({"tidemark": facts})
    buffer = io.BytesIO()
    # Losses that were computed in float32 have zeros in half of their bytes, which then compress.
    pq.write_table(
        table, buffer, compression="zstd", write_page_checksum=True,
        use_dictionary=["model", "revision", "source", "document_id", "protocol"],
        use_byte_stream_split=["nll_nats", "mean_ln_p_nats", "variance_ln_p_nats2"],
    )  # fmt: skip
    return buffer.getvalue()


def read_tokens(store: Store, path: str, ids: Collection[str] | None = None) -> pa.Table:
    """Return the token losses of documents (None: of all); raise StorageError if damaged."""
    chosen = None if ids is None else [("document_id", "in", list(ids))]
    try:
        with store.open(path) as file:
            return pq.read_table(file, filters=chosen).cast(TOKEN_LOSSES)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StorageError(
            f"{store.url(path)} has no token losses ({error}); move it out of the data root, "
            "and `tidemark xray` (extra `xray`) computes them again"
        ) from error
