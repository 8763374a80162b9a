"""Min-K% of the texts of a source, such as a benchmark's items, from kept losses of tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from importlib.resources import files

import duckdb
import numpy as np
import pyarrow as pa

from core.cells.tokens import ROOT, read_tokens
from core.corpus.partition import list_sealed_sources
from core.errors import UsageError, did_you_mean
from core.storage.store import Store, path_part
from extras.xray.min_k import min_k
from warehouse.database.objects import create_objects
from warehouse.database.statements import Row

SHARE = 0.2  # K of Min-K %, as in the main tables of the papers
_SCORES = pa.schema(
    [
        *((name, pa.string()) for name in ("model", "revision", "source", "protocol")),
        ("document_id", pa.string()),
        ("min_k", pa.float64()),
    ]
)


def comparison_sql() -> str:
    """Return the SQL that compares sources."""
    return files("extras.xray").joinpath("min_k_by_source.sql").read_text(encoding="utf-8")


def compare_sources(
    store: Store, sources: Sequence[str], against: str | None, models: Collection[str] = ()
) -> list[Row]:
    """Return Min-K% of sources by model, and the difference to texts that no model has seen.

    The rows are those of ``min_k_by_source.sql``. ``models`` empty means all.

    Raises:
        UsageError: no losses of tokens were kept of a source.
        StorageError: a file is damaged.
    """
    named = [*sources, *([against] if against else [])]
    rows = [row for source in named for row in _scores(store, source, models)]
    for source in named:
        if not any(row["source"] == source for row in rows):
            meant = did_you_mean(source, list_sealed_sources(store))
            raise UsageError(
                f"no losses of tokens are kept of {source}; {meant}its texts need an open licence, "
                "and TIDEMARK_KEPT_DOCUMENTS is the number of texts when they are scored"
            )
    with duckdb.connect() as connection:
        create_objects(connection)
        connection.register("min_k_scores", pa.Table.from_pylist(rows, schema=_SCORES))
        found = connection.sql(comparison_sql(), params={"against": against}).to_arrow_table()
        compared: list[Row] = found.to_pylist()
    return compared


def _scores(store: Store, source: str, models: Collection[str]) -> Iterator[dict[str, object]]:
    """Yield the score of each text under each model; a text of several months has one a month."""
    for path in sorted(store.list(f"{ROOT}/model=*/source={path_part(source)}/month=*/*.parquet")):
        nats: dict[tuple[str, ...], list[float]] = defaultdict(list)
        table = read_tokens(store, path).sort_by("token_index")
        keys = [table[name].to_pylist() for name in _SCORES.names[:-1]]
        values = table["nll_nats"].to_pylist()
        for *key, value in zip(*keys, values, strict=True):
            if not models or key[0] in models:
                nats[tuple(key)].append(np.nan if value is None else value)
        for named, each in nats.items():
            score = min_k(np.array(each), SHARE)
            yield dict(zip(_SCORES.names, [*named, score], strict=True))
