from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from core.corpus.partition import Partition, Seal, read_documents, read_seal, tables_of
from core.month import Month
from core.storage.store import Store

MARCH = Partition("wikipedia", Month("2024-03"))


def rows_of(*texts: str) -> list[dict[str, Any]]:
    return [
        {"native_id": f"n{i}", "date_kind": "created", "licence": "MIT", "text": text}
        for i, text in enumerate(texts)
    ]


def tables(*texts: str, partition: Partition = MARCH) -> Iterator[pa.Table]:
    return tables_of(rows_of(*texts), partition)


def texts_of(store: Store, seal: Seal) -> list[str]:
    return [text for b in read_documents(store, seal, ["text"]) for text in b["text"].to_pylist()]


def newest(store: Store) -> Seal:
    seal = read_seal(store, MARCH)
    assert seal is not None
    return seal
