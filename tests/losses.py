from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from core.schemas.tables import LOSSES
from core.settings import Settings
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish


def loss_row(
    model: str, source: str, month: object, document: str, /, **columns: Any
) -> dict[str, Any]:
    row = {"model": model, "source": source, "month": month, "document_id": document}
    row |= {"revision": "r1", "chunk_index": 0, "protocol": "default", "nll_nats": 10.0}
    num_bytes = columns.get("num_bytes", 20)
    return row | {"num_tokens": 5, "num_chars": min(20, num_bytes), "num_bytes": 20} | columns


def publish_rows(
    settings: Settings, rows: list[dict[str, Any]], *models: Mapping[str, object]
) -> str:
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(rows, schema=LOSSES), "rows")
        if models:
            warehouse.upsert_models(list(models))
    return publish(settings)
