import csv
import datetime as dt
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from core.errors import CellConflict, MalformedInput, SchemaMismatch
from core.settings import Settings
from extras.imported_results.figures import (
    SHIPPED,
    SHIPPED_SCORES,
    land_published,
    load_benchmarks,
    load_ratings,
)
from tests.tiers import needs_extra
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse

pytestmark = pytest.mark.usefixtures("kept_open")

REFERENCE = Path(__file__).resolve().parents[3] / "warehouse" / "reference"
HEADER = "model,source,month,compression_rate\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(content: str | bytes, name: str = "rates.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_rates_are_rows_of_monthly_loss(settings: Settings, write: Any, ask: Any) -> None:
    path = write(HEADER + "a,wiki,2024-01,0.25\na,wiki,2024-02-17,0.375\n")
    landed = land_published(settings, path, "Paper, Table 1")
    assert (landed.num_rows, landed.num_changed) == (2, 2)
    assert (landed.models, landed.sources) == (("a",), ("wiki",))
    rows = ask("from internal.monthly_loss_details order by month")
    assert [(row["month"], row["bits_per_byte"]) for row in rows] == [
        (dt.date(2024, 1, 1), 2.0), (dt.date(2024, 2, 1), 3.0),
    ]  # fmt: skip
    assert {(r["protocol"], r["is_published"], r["is_text"], r["nll_nats"]) for r in rows} == {
        ("published", True, True, None)
    }
    assert ask("select distinct reference from internal.published_rates") == [
        {"reference": "Paper, Table 1"}
    ]
    for dimension, name in (("models", "a"), ("sources", "wiki"), ("protocols", "published")):
        assert ask(f"select {dimension[:-1]} as name from {dimension}") == [{"name": name}]


def test_the_same_again_changes_nothing(settings: Settings, write: Any, dump: Any) -> None:
    path = write(HEADER + "a,wiki,2024-01,0.25\nb,wiki,2024-01,0.5\n")
    land_published(settings, path, "Paper")
    before = dump(settings)
    assert land_published(settings, path).num_changed == 0  # missing values stay
    assert dump(settings) == before


def test_another_rate_needs_replace(settings: Settings, write: Any, dump: Any, ask: Any) -> None:
    land_published(settings, write(HEADER + "a,wiki,2024-01,0.25\n"), "Paper")
    before = dump(settings)
    path = write(HEADER + "b,wiki,2024-01,0.5\na,wiki,2024-01,0.3\n")
    with pytest.raises(CellConflict, match=r"model='a'.*month=2024-01-01.*0\.3.*0\.25.*--replace"):
        land_published(settings, path)
    assert dump(settings) == before
    assert land_published(settings, path, replace=True).num_changed == 2
    rows = ask("select compression_rate, reference from internal.published_rates where model = 'a'")
    assert rows == [{"compression_rate": 0.3, "reference": "Paper"}]


def test_what_was_left_open_can_be_filled_in(settings: Settings, write: Any, ask: Any) -> None:
    land_published(settings, write(HEADER + "a,wiki,2024-01,0.25\n"))
    more = "model,source,month,compression_rate,num_bytes,is_text,reference\n"
    more += "a,wiki,2024-01,0.25,1000,true,Paper\n"
    assert land_published(settings, write(more)).num_changed == 1
    [row] = ask("from internal.published_rates")
    assert (row["num_bytes"], row["reference"]) == (1000, "Paper")
    with pytest.raises(CellConflict, match="num_bytes=2000, landed_num_bytes=1000"):
        land_published(settings, write(more.replace("1000", "2000")))


GOOD = "a,wiki,2024-01,0.25\n"
BAD_ROWS = {
    "nan": ("b,wiki,2024-02,nan\n", r"row 2: compression_rate is 'nan'; expected a number above 0"),
    "infinite": ("b,wiki,2024-02,inf\n", "row 2: compression_rate is 'inf'"),
    "negative": ("b,wiki,2024-02,-0.1\n", "row 2: compression_rate is '-0.1'"),
    "zero": ("b,wiki,2024-02,0\n", "row 2: compression_rate is '0'"),
    "missing": ("b,wiki,2024-02,\n", "row 2: compression_rate is missing"),
    "sign": ("b,wiki,2024-02,7.8%\n", "row 2: compression_rate is '7.8%'.*percent sign"),
    "percentage": ("b,wiki,2024-02,7.825\n", "row 2: compression_rate is '7.825'.*--percent"),
    "huge": ("b,wiki,2024-02,1e308\n", "row 2: compression_rate is '1e308'"),
    "month 13": ("b,wiki,2024-13,0.3\n", "row 2: month is '2024-13'; expected YYYY-MM"),
    "no such day": ("b,wiki,2024-02-30,0.3\n", "row 2: month is '2024-02-30'"),
    "year": ("b,wiki,2024,0.3\n", "row 2: month is '2024'"),
    "no month": ("b,wiki,,0.3\n", "row 2: month is missing"),
    "no model": (" ,wiki,2024-02,0.3\n", "row 2: model is missing; expected the name of a model"),
    "control sign": ("b\x1b[1m,wiki,2024-02,0.3\n", "row 2: model is .*no control characters"),
    "unseen sign": ("b,wi\u200bki,2024-02,0.3\n", "row 2: source is .*signs that are not seen"),
    "no source": ("b,,2024-02,0.3\n", "row 2: source is missing"),
    "twice": (GOOD, "row 2: model, source, month is 'a, wiki, 2024-01-01'.*row 1 is of the same"),
    "twice by day": ("a,wiki,2024-01-09,0.25\n", "row 2: .*'a, wiki, 2024-01-01'"),
    "too few cells": ("b,wiki\n", "cannot be read as CSV.*Expected 4 columns"),
}


def _parquet(model: bytes = b"a", times: int = 1) -> bytes:
    texts = {name: pa.array([b"2024-01"] * times) for name in HEADER.strip().split(",")}
    table = pa.table(texts | {"model": pa.array([model] * times)})
    views = [pa.Array.from_buffers(pa.string(), times, each.chunk(0).buffers()) for each in table]
    out = io.BytesIO()
    pq.write_table(pa.table(views, names=table.column_names), out, store_schema=False)
    return out.getvalue()


OPTIONAL = "model,source,month,compression_rate,num_bytes,is_text\n"
# Content, or a function that makes it.
BAD_FILES: dict[str, tuple[str | bytes | Callable[[], bytes], str]] = {
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "no rows": (HEADER, "has no rows"),
    "no header": ("a,wiki,2024-01,0.25\n", "lacks model, source, month, compression_rate"),
    "semicolons": ("model;source;month;compression_rate\n", "separated by commas"),
    "column twice": ("model,model,source,month,compression_rate\na,b,w,2024-01,1\n", "more than"),
    "latin-1": (HEADER.encode() + b"caf\xe9,wiki,2024-01,0.3\n", "not UTF-8 .*byte 39 is 0xe9"),
    "utf-16": ((HEADER + GOOD).encode("utf-16"), "not UTF-8"),
    "damaged parquet": (b"PAR1 and no more", "cannot be read as Parquet"),
    "name not UTF-8": (
        lambda: _parquet().replace(b"source", b"\xff\xffurce"),
        "cannot be read as Parquet",
    ),
    "text not UTF-8": (lambda: _parquet(b"\xff"), "Invalid UTF8"),
    "rows of nothing": (lambda: _parquet(times=2**21), "MiB when decoded"),
    "bytes": (OPTIONAL + "a,wiki,2024-01,0.3,-1,\n", "row 1: num_bytes is '-1'"),
    "truth": (OPTIONAL + "a,wiki,2024-01,0.3,,perhaps\n", "row 1: is_text is 'perhaps'"),
}


BAD_FILES |= {name: (HEADER + GOOD + row, says) for name, (row, says) in BAD_ROWS.items()}


def test_a_bad_file_or_row_is_named_and_nothing_lands(
    settings: Settings, write: Any, dump: Any, subtests: pytest.Subtests
) -> None:
    with open_warehouse(settings):
        before = dump(settings)
    for case, (content, message) in BAD_FILES.items():
        with (
            subtests.test(case),
            pytest.raises((SchemaMismatch, MalformedInput), match=message),
        ):
            land_published(settings, write(content() if callable(content) else content))
    assert dump(settings) == before


def test_a_file_that_is_not_there_or_too_large(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as stream:
        stream.truncate(300 * 2**20)  # sparse
    for name, says in {
        "nothing.csv": r"nothing\.csv cannot be read: No such file",
        ".": "cannot be read: Is a directory",
        "large.csv": "has 300 MiB; expected at most 256",
        "/dev/zero": "no regular file",
    }.items():
        with pytest.raises(MalformedInput, match=says):
            land_published(settings, tmp_path / name)


def test_percentages(settings: Settings, write: Any, ask: Any) -> None:
    land_published(settings, write(HEADER + "a,wiki,2024-01,25\n"), is_percent=True)
    [row] = ask("select compression_rate from internal.published_rates")
    assert row == {"compression_rate": 0.25}
    for rate, says in (("0.078", "leave --percent out"), ("301", "at most 300")):
        with pytest.raises(SchemaMismatch, match=says):
            land_published(settings, write(f"{HEADER}a,wiki,2024-01,{rate}\n"), is_percent=True)


HOSTILE = [
    "'); drop table internal.published_rates; --", "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>",
    "a,\"b\" c", "模型 🌊", "$reference", "NA", "null", "x" * 4000,
]  # fmt: skip


def test_names_are_data(settings: Settings, tmp_path: Path, ask: Any) -> None:
    path = tmp_path / "'; drop table models; --.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.strip().split(","))
        writer.writerows([name, name, "2024-01", "0.25"] for name in HOSTILE)
    assert land_published(settings, path, HOSTILE[0]).num_changed == len(HOSTILE)
    rows = ask("select model, source from monthly_loss")
    assert {row["model"] for row in rows} == {row["source"] for row in rows} == set(HOSTILE)


def test_a_byte_order_mark_spaces_and_other_columns(
    settings: Settings, write: Any, ask: Any
) -> None:
    text = "\ufeffmodel, month , notes, compression_rate, source\r\n"
    text += "a, 2024-01, n, 0.25, wiki\r\n\r\n"
    landed = land_published(settings, write(text))
    assert (landed.num_changed, landed.ignored) == (1, ("notes",))
    [row] = ask("select model, source, compression_rate from internal.published_rates")
    assert row == {"model": "a", "source": "wiki", "compression_rate": 0.25}


def test_parquet(settings: Settings, tmp_path: Path, ask: Any) -> None:
    moment = dt.datetime(2024, 2, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    months = {
        "dates": pa.array([dt.date(2024, 1, 5)]),
        "texts": pa.array(["2024-01"]),
        "moments": pa.array([moment], pa.timestamp("us", "Europe/Paris")),  # January in UTC
    }
    for name, month in months.items():
        rate = pa.array([0.1 + 0.2])
        columns = {"model": [name], "source": ["wiki"], "month": month, "compression_rate": rate}
        pq.write_table(pa.table(columns), tmp_path / "rates.parquet")
        land_published(settings, tmp_path / "rates.parquet")
    rows = ask("select distinct month, compression_rate from internal.published_rates")
    assert rows == [{"month": dt.date(2024, 1, 1), "compression_rate": 0.1 + 0.2}]
    columns = {"model": [["a"]], "source": ["w"], "month": ["2024-01"], "compression_rate": [0.1]}
    pq.write_table(pa.table(columns), tmp_path / "rates.parquet")
    with pytest.raises(SchemaMismatch, match="column model is list.*expected text"):
        land_published(settings, tmp_path / "rates.parquet")


SCORES = "model,benchmark,score,reference,as_of\n"


def test_scores(settings: Settings, write: Any, ask: Any, dump: Any) -> None:
    path = write(SCORES + "a,mmlu,50.5,Paper,2024-03\nb,mmlu,-1e-3,,\n")
    assert load_benchmarks(settings, path).num_changed == 2
    [row] = ask("from internal.benchmark_scores where model = 'a'")
    assert (row["score"], row["as_of"]) == (50.5, dt.date(2024, 3, 1))
    before = dump(settings)
    assert load_benchmarks(settings, path).num_changed == 0
    with pytest.raises(CellConflict, match=r"benchmark='mmlu', score=51\.0, landed_score=50\.5"):
        load_benchmarks(settings, write(SCORES + "c,mmlu,1,,\na,mmlu,51,,\n"))
    assert dump(settings) == before
    path = write("model,benchmark,score\na,mmlu,51\n")
    assert load_benchmarks(settings, path, replace=True).num_changed == 1


@needs_extra("papers")
def test_abilities_are_means_of_their_benchmarks(settings: Settings, write: Any, ask: Any) -> None:
    header = "model,benchmark,score,ability\n"
    rows = "a,mmlu,50,knowledge\na,arc,30,\nb,mmlu,40,knowledge\nb,arc,10,knowledge\n"
    load_benchmarks(settings, write(header + rows + "c,mmlu,20,knowledge\nc,humaneval,5,\n"))
    scored = (
        "select model, against, score from internal.model_scores where against_kind = 'ability'"
    )
    assert ask(f"{scored} order by model") == [
        {"model": "a", "against": "knowledge", "score": 40.0},
        {"model": "b", "against": "knowledge", "score": 25.0},
    ]
    with pytest.raises(CellConflict, match="ability='coding', landed_ability='knowledge'"):
        load_benchmarks(settings, write(header + "a,mmlu,50,coding\n"))


def test_a_bad_score(settings: Settings, write: Any) -> None:
    for row, says in {
        "a,mmlu,nan,,\n": "row 1: score is 'nan'; expected a number within a billion",
        "a,mmlu,high,,\n": "row 1: score is 'high'",
        "a,,1,,\n": "row 1: benchmark is missing",
        "a,mmlu,1,,spring\n": "row 1: as_of is 'spring'",
        "a,mmlu,1,,\na,mmlu,1,,\n": "row 2: model, benchmark is 'a, mmlu'.*row 1",
    }.items():
        with pytest.raises(SchemaMismatch, match=says):
            load_benchmarks(settings, write(SCORES + row))


def agrees(figure: float, printed: str) -> bool:
    """Return True if a figure rounds to the printed one; ties may round either way."""
    unit = 10.0 ** -len(printed.partition(".")[2])
    return abs(figure - float(printed)) <= unit / 2 + 1e-9


def test_shipped_rates_give_table_3() -> None:
    """All 17 rows that are printed for Wikipedia, to their last digit."""
    rates = pl.read_csv(SHIPPED)
    names = yaml.safe_load(SHIPPED.with_suffix(".yml").read_text())
    is_after = rates["month"] >= "2023-01"
    printed = pl.read_csv(REFERENCE / "li_2024.csv", infer_schema=False).filter(
        printed_table="Table 3", row_key="Wikitext"
    )
    table = {(row["model"], row["column_name"]): row["value"] for row in printed.to_dicts()}
    told = {given["printed"]: name for name, given in names["models"].items() if "printed" in given}
    assert told.keys() == {model for model, _ in table}
    assert len(told) == 17
    for model, name in told.items():
        after = rates[name].filter(is_after).mean()
        before = rates[name].filter(~is_after).mean()
        assert agrees(rates[name].mean(), table[model, "rate_2017_2023"]), model
        assert agrees(after, table[model, "rate_2023"]), model
        assert agrees(after - before, table[model, "rate_2023_less_2017_2022"]), model


def test_shipped_rates_are_those_of_the_authors_file(shared: Path) -> None:
    names = yaml.safe_load(SHIPPED.with_suffix(".yml").read_text())["models"]
    file = pl.read_csv(shared / "data/published/wikitext_monthly_rates.csv")
    theirs = file.pivot("model", index="month", values="compression_rate").sort("month")
    ours = pl.read_csv(SHIPPED)
    assert ours["month"].to_list() == theirs["month"].to_list()
    assert {given["file"] for given in names.values()} == set(theirs.columns) - {"month"}
    for name, given in names.items():
        differences = (ours[name] - 100 * theirs[given["file"]]).abs()
        assert differences.null_count() == theirs[given["file"]].null_count()
        assert differences.max() < 0.5001e-4, name


PUZZLES = {"two_sum": "O(N^2)", "find_minimum": "O(N)"}


def test_ratings_of_people_load_once(settings: Settings, write: Any, ask: Any) -> None:
    path = write("puzzle,complexity,rating,num_raters,age\ntwo_sum,O(N^2),3.5,12,\n", "r.csv")
    changed = [load_ratings(settings, path, PUZZLES).num_changed for _ in range(2)]
    assert changed == [1, 0]
    rows = ask("from internal.human_difficulty")
    assert rows == [
        {
            "puzzle": "two_sum", "complexity": "O(N^2)", "rating": 3.5, "num_raters": 12,
            "reference": None,
        }
    ]  # fmt: skip
    other = write("puzzle,complexity,rating\ntwo_sum,O(N^2),4\n", "other.csv")
    with pytest.raises(CellConflict, match=r"rating=4.0, landed_rating=3.5"):
        load_ratings(settings, other, PUZZLES)
    assert load_ratings(settings, other, PUZZLES, replace=True).num_changed == 1
    kept = ask("select rating, num_raters from internal.human_difficulty")
    assert kept == [{"rating": 4.0, "num_raters": 12}]


FAULTY_RATINGS = [
    ("two_sums,O(N^2),3,", "puzzle is 'two_sums'; expected the name of a puzzle"),
    ("two_sum,O(N),3,", r"complexity is 'O\(N\)'; expected O\(N\^2\), as of this puzzle"),
    ("two_sum,O(N^2),hard,", "rating is 'hard'; expected a number"),
    ("two_sum,O(N^2),3,0", "num_raters is '0'; expected a number of people"),
    ("find_minimum,O(N),2,1", "row 2: puzzle, complexity is .*row 1 is of the same"),
]


def test_faulty_ratings_are_refused(
    settings: Settings, write: Any, peek: Any, subtests: pytest.Subtests
) -> None:
    head = "puzzle,complexity,rating,num_raters\nfind_minimum,O(N),1,\n"
    for row, message in FAULTY_RATINGS:
        with subtests.test(row), pytest.raises(SchemaMismatch, match=message):
            load_ratings(settings, write(f"{head}{row}\n", "r.csv"), PUZZLES)
    assert peek("from internal.human_difficulty") == []


def test_shipped_scores_are_those_of_the_printed_table(settings: Settings) -> None:
    names = pl.read_csv(REFERENCE / "names" / "published_models.csv").filter(paper="li_2024")
    printed = pl.read_csv(REFERENCE / "li_2024.csv", infer_schema=False).filter(
        pl.col("printed_table") == "Table 4", pl.col("column_name").is_in(["humaneval", "mmlu"])
    )
    model_of = dict(names.select("printed_model", "model").iter_rows())
    benchmark_of = {"humaneval": "HumanEval", "mmlu": "MMLU"}
    expected = {
        (model_of[row["model"]], benchmark_of[row["column_name"]]): float(row["value"])
        for row in printed.iter_rows(named=True)
    }
    assert len(expected) == 14
    ours = pl.read_csv(SHIPPED_SCORES).iter_rows(named=True)
    assert {(row["model"], row["benchmark"]): row["score"] for row in ours} == expected
    load_benchmarks(settings, SHIPPED_SCORES)
    with connected(settings) as connection:
        counted = connection.sql("select count(*) from internal.benchmark_scores").fetchall()
    assert counted == [(14,)]
