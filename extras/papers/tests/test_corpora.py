import datetime as dt
from typing import Any

import numpy as np
import pytest

from core.settings import Settings
from tests.losses import publish_rows
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, transaction
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long

MODELS = ["a", "b", "c", "d"]
MONTH = dt.date(2024, 1, 1)


def rows_of(month: dt.date | None) -> list[dict[str, Any]]:
    """Return losses of two sources; a and b differ less than their documents tell."""
    rng = np.random.default_rng(1)
    rows = []
    for source in ("books", "code"):
        for number in range(30):
            size = int(rng.integers(50, 500))
            common = rng.normal(2, 0.2)
            for place, model in enumerate(MODELS):
                bits = size * (common + 0.1 * max(place - 1, 0) + rng.normal(0, 0.05))
                rows.append(
                    {
                        "model": model, "revision": "r", "source": source, "month": month,
                        "document_id": f"{source} {number}", "chunk_index": 0,
                        "protocol": "default", "nll_nats": bits * np.log(2), "num_tokens": size,
                        "num_chars": size, "num_bytes": size,
                    }
                )  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The same texts twice: undated, and as a first month."""
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    publish_rows(settings, rows_of(None) + rows_of(MONTH))
    return settings


def test_undated_pairs_are_those_of_a_month(both: Settings) -> None:
    """One character is one byte here, so both views speak of the same figures."""
    ends = "difference, difference_low_documents, difference_high_documents"
    keys = "model, other_model, source"
    undated = query(both, f"select {keys}, {ends} from papers.corpus_difference order by {keys}")
    dated = query(both, f"select {keys}, {ends} from model_difference order by {keys}")
    assert undated.num_rows == 18
    for one, other in zip(undated.to_pylist(), dated.to_pylist(), strict=True):
        # Of a mean, model_difference adds up the sources' errors; here, replicates have the sum.
        share = 1e-9 if one["source"] else 0.15
        assert one["difference"] == pytest.approx(other["difference"])
        width, other_width = (
            row["difference_high_documents"] - row["difference_low_documents"]
            for row in (one, other)
        )
        assert width == pytest.approx(other_width, rel=share)


def test_undated_ranks_are_those_of_a_month(both: Settings) -> None:
    """A first month of four models has a ranking with intervals, and so has undated text."""
    undated = query(
        both,
        """select model, rank, rank_low_documents, rank_high_documents,
            bits_per_char as figure, bits_per_char_low_documents as low
        from papers.corpus_rank where source is null order by model""",
    ).to_pylist()
    dated = query(
        both,
        """select model, rank, rank_low_documents, rank_high_documents,
            bits_per_byte as figure, bits_per_byte_low_documents as low
        from internal.headline_intervals_at(null, null, 'new') order by model""",
    ).to_pylist()
    assert undated == [{k: pytest.approx(v) for k, v in row.items()} for row in dated]
    sets = [(row["rank_low_documents"], row["rank_high_documents"]) for row in undated]
    assert sets == [(1, 2), (1, 2), (3, 3), (4, 4)]


def test_ranks_settle_with_the_size_of_a_corpus(both: Settings) -> None:
    rows = query(
        both,
        """select source, is_undated, share, correlation, same_first from papers.corpus_size
        where against is null order by all""",
    ).to_pylist()
    assert len(rows) == 2 * 2 * 3  # a sixteenth of 30 documents is too few
    by_size = [row["correlation"] for row in rows[:3]]
    assert by_size == sorted(by_size)
    assert by_size[0] < 0.95 < by_size[-1]
    undated = [row["correlation"] for row in rows if row["is_undated"]]
    dated = [row["correlation"] for row in rows if not row["is_undated"]]
    assert undated == pytest.approx(dated)


def test_reasons_lead_to_the_views_of_undated_text(settings: Settings) -> None:
    publish_rows(settings, rows_of(None))
    assert query(settings, "from headline").num_rows == 0
    reasons = query(settings, "select distinct reason from unmeasured where left_out_of='headline'")
    assert reasons.to_pylist() == [{"reason": "only undated text: see corpus_rank"}]


def test_published_compressors_have_no_cutoff(settings: Settings) -> None:
    months = [dt.date(2020 + n // 12, n % 12 + 1, 1) for n in range(36)]
    step = [0.4 + 0.1 * (month >= dt.date(2021, 7, 1)) for month in months]
    rows = [
        (model, "wiki", month, rate, True, "Paper")
        for model in ("zlib", "PNG", "Llama-2-7B")
        for month, rate in zip(months, step, strict=True)
    ]
    with connected(settings) as connection, transaction(connection, "plant rates"):
        connection.executemany(
            "insert into internal.published_rates "
            "(model, source, month, compression_rate, is_text, reference) "
            "values (?, ?, ?, ?, ?, ?)",
            rows,
        )
        Statements(connection).add_names("models", "published_rates")
        Statements(connection).add_names("sources", "published_rates")
    publish(settings)
    found = (
        "select model, estimated_cutoff, reason from estimated_cutoff "
        "where scope = ? order by model"
    )
    for scope in ("all", "source"):
        rows = query(settings, found, [scope]).to_pylist()
        assert [row["model"] for row in rows] == ["Llama-2-7B", "PNG", "zlib"]
        for row in rows[1:]:
            assert row["estimated_cutoff"] is None
            assert row["reason"] == "a compressor has no cutoff"
