"""Reading of Parquet files of the data root whose rows must follow a schema."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import DamagedFile, StorageError
from core.schemas.validation import validate
from core.storage.store import Store

REMEDY = "bring it back from a backup, or move it out of the data root"  # of a damaged file


def read_valid(
    store: Store, path: str, schema: pa.Schema, remedy: str = REMEDY, where: str | None = None
) -> pa.Table:
    """Read a Parquet file of the data root, and validate its rows.

    Raises:
        DamagedFile: the content is damaged; the message states ``remedy``.
        SchemaMismatch: a row violates the schema; the message names ``where``, or the path.
        StorageError: the file cannot be read.
    """
    try:
        with store.open(path) as file:
            table = pq.read_table(file, page_checksum_verification=True)
    # Of a damaged schema, names may not be UTF-8, and types may be unknown.
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        # Errors about content have no number; those of the disk or the network have one.
        is_content = not isinstance(error, OSError) or error.errno is None
        kind = DamagedFile if is_content else StorageError
        raise kind(f"{store.url(path)} is damaged ({error}); {remedy}") from error
    return validate(table, schema, where or path)
