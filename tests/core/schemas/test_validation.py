import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from core.errors import SchemaMismatch
from core.schemas.tables import ANSWERS, DOCUMENTS, DUPLICATES, LOSSES, MEDIA, QUESTIONS
from core.schemas.validation import validate

NOW = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
ROWS: dict[str, tuple[pa.Schema, dict[str, Any]]] = {
    "DOCUMENTS": (
        DOCUMENTS,
        {
            "document_id": "d", "source": "s", "month": dt.date(2024, 3, 1), "native_id": "n",
            "date_kind": "created", "licence": "MIT", "num_chars": 3, "num_bytes": 4,
            "sha256_text": "0", "text": "abé",
        },
    ),
    "MEDIA": (
        MEDIA,
        {
            "document_id": "d", "source": "s", "month": dt.date(2024, 3, 1), "native_id": "n",
            "date_kind": "created", "licence": "MIT", "media_kind": "image", "codec": "grey8",
            "num_bytes": 2, "sha256_media": "0", "media": b"ab",
        },
    ),
    "LOSSES": (
        LOSSES,
        {
            "model": "m", "revision": "r", "source": "s", "month": dt.date(2024, 3, 1),
            "document_id": "d", "chunk_index": 0, "protocol": "default", "nll_nats": 1.5,
            "num_tokens": 2, "num_chars": 3, "num_bytes": 4,
        },
    ),
    "QUESTIONS": (
        QUESTIONS,
        {
            "question_id": "q", "source": "s", "title": "?", "options": ["yes", "no"],
            "answer_index": 1, "opened_at": NOW, "resolved_at": NOW, "status": "resolved",
            "licence": "MIT",
        },
    ),
    "DUPLICATES": (
        DUPLICATES,
        {
            "source": "s", "month": dt.date(2024, 3, 1), "document_id": "d",
            "duplicate_of_month": dt.date(2024, 2, 1), "duplicate_of_document_id": "e",
            "similarity": 0.5, "found_at": NOW,
        },
    ),
    "ANSWERS": (
        ANSWERS,
        {
            "model": "m", "revision": "r", "source": "s", "question_id": "q", "protocol": "p",
            "probabilities": [0.5, 0.5], "chosen_index": 0, "is_parsed": True,
        },
    ),
}  # fmt: skip


def _table(name: str, *changes: dict[str, Any]) -> pa.Table:
    _, row = ROWS[name]
    return pa.Table.from_pylist([{**row, **change} for change in changes or ({},)])


@pytest.mark.parametrize("name", ROWS)
def test_a_good_table_comes_back_in_its_schema(name: str) -> None:
    schema, row = ROWS[name]
    table = validate(_table(name).select(list(reversed(row))), schema)
    assert table.schema == schema
    assert {key: table[key][0].as_py() for key in row} == row
    assert validate(_table(name).slice(0, 0), schema).schema == schema
    assert validate(schema.empty_table(), schema).num_rows == 0


@pytest.mark.parametrize("name", ROWS)
def test_required_columns_are_required(name: str) -> None:
    schema, _ = ROWS[name]
    for field in schema:
        if not field.nullable:
            with pytest.raises(SchemaMismatch, match=f"here: column '{field.name}' is missing"):
                validate(_table(name).drop_columns([field.name]), schema, where="here")
            with pytest.raises(SchemaMismatch, match=f"row 1: {field.name} is required"):
                validate(_table(name, {}, {field.name: None}), schema)


SIZES = ("tokens", "chars", "bytes")
BROKEN = [
    ("DOCUMENTS", {"num_bytes": 3}, "UTF-8 length"),
    ("DOCUMENTS", {"num_chars": 4}, "code points"),
    ("DOCUMENTS", {"month": dt.date(2024, 3, 2)}, "first day"),
    ("DOCUMENTS", {"source": ""}, "source must not be empty"),
    ("DOCUMENTS", {"document_id": ""}, "document_id must not be empty"),
    ("MEDIA", {"num_bytes": 3}, "length of media"),
    *(("MEDIA", {each: ""}, f"{each} must not be empty") for each in ("source", "document_id")),
    ("MEDIA", {"month": dt.date(2024, 3, 2)}, "first day"),
    *(("MEDIA", change, "media_kind and codec must be")
      for change in ({"media_kind": "video"}, {"codec": "png"}, {"media_kind": "audio"})),
    ("MEDIA", {"media_kind": "audio", "codec": "pcm_s16le", "media": b"abc", "num_bytes": 3},
     "a sample has two"),
    ("LOSSES", {"nll_nats": -0.1}, "nll_nats must be >= 0"),
    ("LOSSES", {"nll_nats": float("inf")}, "finite"),
    ("LOSSES", {"nll_nats": float("-inf")}, "nll_nats"),
    ("LOSSES", {"nll_nats": float("nan")}, "reason must say why"),
    ("LOSSES", {"nll_nats": None}, "reason must say why"),
    ("LOSSES", {"nll_nats": None, "reason": ""}, "reason must say why"),
    ("LOSSES", {"nll_nats": 1e300}, "nll_nats must be below"),
    ("LOSSES", {"chunk_index": -1}, "chunk_index must be >= 0"),
    *(("LOSSES", {f"num_{each}": 2**62}, f"num_{each} must be below") for each in SIZES),
    *(("LOSSES", {f"num_{each}": -1}, f"num_{each} must be >= 0") for each in SIZES),
    *(("LOSSES", {each: ""}, f"{each} must not be empty") for each in ("model", "protocol")),
    ("LOSSES", {"month": dt.date(2024, 3, 31)}, "first day"),
    ("QUESTIONS", {"answer_index": 2}, "one of options"),
    ("QUESTIONS", {"answer_index": -1}, "one of options"),
    ("QUESTIONS", {"answer_index": None}, "a resolved question must have an answer_index"),
    ("QUESTIONS", {"resolved_at": None}, "a resolved question must have an answer_index"),
    ("QUESTIONS", {"status": "void"}, "another none"),
    ("QUESTIONS", {"question_id": ""}, "question_id must not be empty"),
    ("ANSWERS", {"chosen_index": None}, "reason must say why"),
    ("DUPLICATES", {"duplicate_of_month": dt.date(2024, 3, 1)}, "must lie before month"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "says"), BROKEN)
def test_the_first_broken_row_is_named(name: str, change: dict[str, Any], says: str) -> None:
    schema, _ = ROWS[name]
    with pytest.raises(SchemaMismatch, match=f"file.parquet: row 2: .*{says}"):
        validate(_table(name, {}, {}, change, change), schema, where="file.parquet")


@pytest.mark.parametrize("side", [2, 65_536])  # the square of the second has 33 bits
def test_an_image_has_one_byte_a_pixel(side: int) -> None:
    fits, unsaid = {"width": 1, "height": 2}, {"width": None, "height": None}
    assert validate(_table("MEDIA", fits, unsaid), MEDIA).num_rows == 2
    with pytest.raises(SchemaMismatch, match="row 1: num_bytes must be width times height"):
        validate(_table("MEDIA", fits, {"width": side, "height": side}), MEDIA)


def test_a_missing_loss_with_its_reason_and_a_column_of_nulls_are_fine() -> None:
    table = _table("LOSSES", {"nll_nats": float("nan"), "reason": "too long"}, {"nll_nats": 0.0})
    assert validate(table, LOSSES).num_rows == 2
    assert validate(_table("LOSSES", {"month": None}), LOSSES)["month"].null_count == 1
    table = _table("LOSSES").append_column("reason", pa.array([None], pa.float64()))
    assert validate(table, LOSSES)["reason"].null_count == 1
    table = _table("LOSSES").append_column("mood", pa.array(["good"]))
    checked = validate(table, LOSSES)
    assert "mood" not in checked.column_names
    assert checked["reason"].null_count == 1


def test_types_are_cast_where_nothing_is_lost() -> None:
    table = _table("LOSSES")
    table = table.set_column(0, "model", pa.array(["m"]).dictionary_encode())
    table = table.set_column(3, "month", pa.array([dt.datetime(2024, 3, 1)]))  # noqa: DTZ001
    index = table.column_names.index("num_tokens")
    table = table.set_column(index, "num_tokens", pa.array([2.0]))
    assert validate(table, LOSSES)["month"][0].as_py() == dt.date(2024, 3, 1)


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("num_tokens", pa.array(["1", "2", "three", "four"]), "row 2: column 'num_tokens'"),
        ("num_tokens", pa.array([1.0, 2.0, 2.5, 3.5]), "row 2: column 'num_tokens'"),
        ("chunk_index", pa.array([0, 1, 2**31, 2**40]), "row 2: column 'chunk_index'"),
        ("month", pa.array(["2024-03-01", "2024-04-01", "2024-05", "x"]), "row 2: column 'month'"),
        ("model", pa.array([b"a", b"b", b"\xff", b"\xfe"]), "row 2: column 'model'"),
        ("nll_nats", pa.array(["1.5", "2"]), "row 0: column 'nll_nats' is string"),
        ("num_tokens", pa.array([True, False]), "row 0: column 'num_tokens' is bool"),
        ("model", pa.array([1, 2]), "row 0: column 'model' is int64"),
        ("month", pa.array([19783, 19783], pa.int32()), "row 0: column 'month' is int32"),
        (
            "month",
            pa.array([19783, -2_400_000], pa.int32()).cast(pa.date32()),
            "row 1: .*years 1 to 9999 .*month='-4601-01-09'",
        ),
    ],
)
def test_the_first_value_that_does_not_cast_is_named(
    column: str, values: pa.Array, says: str
) -> None:
    table = _table("LOSSES", *({} for _ in values))
    table = table.set_column(table.column_names.index(column), column, values)
    with pytest.raises(SchemaMismatch, match=says):
        validate(table, LOSSES)


def test_a_column_that_is_there_twice_is_refused() -> None:
    table = _table("LOSSES").append_column("nll_nats", pa.array([2.0]))
    with pytest.raises(SchemaMismatch, match="'nll_nats' is there more than once"):
        validate(table, LOSSES)


@pytest.mark.parametrize("name", ["month", "nll_nats"])
def test_a_loss_and_its_month_may_be_null_but_not_left_out(name: str) -> None:
    table = _table("LOSSES", {"reason": "too long"}).drop_columns([name])
    with pytest.raises(SchemaMismatch, match=f"column '{name}' is missing; required .*{name}"):
        validate(table, LOSSES)
