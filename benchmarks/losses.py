"""Tables of generated losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from core.schemas.tables import LOSSES

_USUAL = {"chunk_index": 0, "protocol": "default", "revision": "r1", "reason": None}


def losses_table(**columns: Any) -> pa.Table:
    """Return a table of schema LOSSES; a single value, also of ``_USUAL``, is that of all rows."""
    num_rows = len(columns["nll_nats"])
    arrays = {
        name: pa.array(value) if isinstance(value, list | np.ndarray | pa.Array)
        else pa.repeat(value, num_rows)
        for name, value in (_USUAL | columns).items()
    }  # fmt: skip
    return pa.table([arrays[field.name].cast(field.type) for field in LOSSES], schema=LOSSES)
