import datetime as dt
import math

import pyarrow as pa
import pytest

from core.schemas.tables import LOSSES
from core.schemas.validation import validate
from models.fake import FakeScorer
from models.scoring.protocols import get_protocol


def test_a_byte_costs_what_its_month_costs(batch_of):
    batch = batch_of("é🙂ab", "")
    months = pa.array([dt.date(2024, 3, 1), None], pa.date32())
    batch = batch.set_column(batch.schema.get_field_index("month"), "month", months)
    scorer = FakeScorer(bits_per_byte=lambda month: 3.0 if month else 1.0)
    table = pa.concat_tables(scorer.score([batch], get_protocol("disjoint-4")))
    rows = validate(table, LOSSES).to_pylist()
    # Three bytes a window, after the start token: é and a quarter of the face, the rest, "b".
    assert [row["num_bytes"] for row in rows] == [3, 3, 2, 0]
    assert [row["num_chars"] for row in rows] == [1, 1, 2, 0]
    assert rows[0]["nll_nats"] == pytest.approx(3 * 3 * math.log(2))
    assert math.isnan(rows[3]["nll_nats"])
    assert rows[3]["reason"] == "no_tokens"


def test_its_figures_follow_the_protocol(batch_of):
    scorer = FakeScorer(context=512)
    assert scorer.scoring_id(get_protocol("default")) == scorer.scoring_id(get_protocol("default"))
    table = pa.concat_tables(scorer.score([batch_of("a" * 1000)], get_protocol("default")))
    assert table["num_tokens"].to_pylist() == [511, 489]
    (table,) = scorer.score([batch_of("a" * 20)], get_protocol("uncheatable-10"))
    assert table["num_tokens"].to_pylist() == [9, 9]
    assert table["num_bytes"].to_pylist() == [10, 10]
