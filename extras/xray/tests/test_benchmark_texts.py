from statistics import mean, variance
from typing import Any

import pyarrow as pa
import pytest

from core.cells.tokens import to_parquet
from core.errors import UsageError
from core.schemas.tables import TOKEN_LOSSES
from core.storage.store import Store
from extras.xray.benchmark_texts import compare_sources
from tests.commands import *  # noqa: F403

T_975 = 12.7062047362  # Student's t of one degree of freedom


def keep(store: Store, model: str, source: str, *texts: list[float]) -> None:
    """Write token losses of texts whose k-th token is the k-th number."""
    rows = [
        {
            "model": model, "revision": "r", "source": source, "document_id": f"d{place}",
            "protocol": "default", "chunk_index": 0, "token_index": index, "token_id": 0,
            "begin_byte": index, "end_byte": index + 1, "nll_nats": nats,
        }
        for place, text in enumerate(texts) for index, nats in enumerate(text)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=TOKEN_LOSSES)
    store.write_bytes(
        f"tokens/model={model}/source={source}/month=undated/a.parquet", to_parquet(table)
    )


@pytest.fixture
def kept(store: Store) -> Store:
    """A model that knows a benchmark, and one that does not; 20 % of 5 tokens are one token."""
    keep(store, "seen", "maths", [0.1, 1.0, 0.2, 0.1, 0.1], [3.0, 0.1, 0.1, 0.1, 0.1])
    keep(store, "fair", "maths", [0.1, 6.0, 0.2, 0.1, 0.1], [8.0, 0.1, 0.1, 0.1, 0.1])
    for name in ("seen", "fair"):
        keep(store, name, "new", [5.0, 0.1, 0.1, 0.1, 0.1], [7.0, 0.1, 0.1, 0.1, 0.1])
    return store


def test_a_benchmark_that_a_model_knows_is_above_the_others(kept: Store) -> None:
    seen, fair = compare_sources(kept, ["maths"], "new")
    assert [seen["model"], fair["model"]] == ["seen", "fair"]
    assert (seen["num_texts"], fair["num_texts"]) == (2, 2)
    assert seen["min_k"] == pytest.approx(-2.0)
    assert fair["min_k"] == pytest.approx(-7.0)
    assert (seen["difference"], fair["difference"]) == (pytest.approx(4.0), pytest.approx(-1.0))
    assert seen["difference_less_mean"] == pytest.approx(2.5)
    own = [-1.0, -3.0]
    other = [-5.0, -7.0]
    error = T_975 * (variance(own) / 2) ** 0.5
    assert seen["min_k_low"] == pytest.approx(mean(own) - error, rel=1e-6)
    both = T_975 * (variance(own) / 2 + variance(other) / 2) ** 0.5
    assert seen["difference_high"] == pytest.approx(4 + both, rel=1e-6)


def test_without_other_texts_there_is_no_difference(kept: Store) -> None:
    (row,) = compare_sources(kept, ["maths"], None, ["fair"])
    assert (row["model"], row["difference"], row["difference_less_mean"]) == ("fair", None, None)


def test_a_source_without_kept_losses_is_named(kept: Store, tidemark: Any) -> None:
    with pytest.raises(UsageError, match="kept of other"):
        compare_sources(kept, ["other"], None)
    assert "seen" in tidemark("min-k", "--source", "maths", "--against", "new").expect(0).out
    tidemark("min-k", "--source", "maths", "-m", "none").expect(2)
