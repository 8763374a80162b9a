import csv
import io
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from cli.terminal.console import out, print_rows, print_table, progress_bars
from cli.terminal.tables import MAX_SHOWN_ROWS, write_table
from core import progress
from core.errors import StorageError, UsageError

FORMATS = ["table", "csv", "json", "parquet"]
Write = Callable[[str, str], Path]


def run(sql: str) -> pa.RecordBatchReader:
    return duckdb.connect().sql(sql).to_arrow_table().to_reader()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(sql: str, format: str) -> Path:
        path = tmp_path / "output"
        write_table(run(sql), format, path)
        return path

    return write


def as_json(write: Write, sql: str) -> list[dict[str, Any]]:
    rows = json.loads(write(sql, "json").read_bytes())
    assert isinstance(rows, list)
    return rows


def as_csv(write: Write, sql: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(write(sql, "csv").read_text(encoding="utf-8"))))


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 10**29 + 7])
def test_large_whole_numbers_are_exact(write: Write, number: int) -> None:
    sql = f"select {number} as n"
    assert as_json(write, sql) == [{"n": number}]
    assert as_csv(write, sql) == [["n"], [str(number)]]
    assert pq.read_table(write(sql, "parquet"))["n"].to_pylist() == [number]


def test_sums_are_whole_numbers_of_the_usual_size(write: Write) -> None:
    sql = "select sum(i) as total from range(10) t(i)"  # 128 bits in DuckDB
    assert as_json(write, sql) == [{"total": 45}]
    assert as_csv(write, sql) == [["total"], ["45"]]
    assert pq.read_schema(write(sql, "parquet")).field("total").type == pa.int64()
    decimals = pq.read_table(write("select 1.50::decimal(10, 2) as d", "parquet"))["d"]
    assert decimals.to_pylist() == [Decimal("1.50")]


@pytest.mark.parametrize(
    ("sql", "as_objects", "as_lines"),
    [
        ("select 'nan'::double a, 'inf'::double b, ['-inf'::double, 1.5] c, 0.1::double d",
         {"a": None, "b": None, "c": [None, 1.5], "d": 0.1}, ["NaN", "inf", "[null, 1.5]", "0.1"]),
        ("select 1.50::decimal(10, 2) as d", {"d": 1.5}, ["1.50"]),
        ("select date '2024-02-29' d, timestamp '2024-01-01 10:00' t, time '09:30' c",
         {"d": "2024-02-29", "t": "2024-01-01T10:00:00", "c": "09:30:00"},
         ["2024-02-29", "2024-01-01 10:00:00.000000", "09:30:00.000000"]),
        ("select 1 as a, 2 as A, 3 as a_1, 4 as a", {"a": 1, "A_2": 2, "a_1": 3, "a_3": 4},
         ["1", "2", "3", "4"]),
    ],
)  # fmt: skip
def test_values(write: Write, sql: str, as_objects: dict[str, Any], as_lines: list[str]) -> None:
    """JSON has no number for NaN; columns of one name are numbered."""
    assert as_json(write, sql) == [as_objects]
    assert as_csv(write, sql) == [list(as_objects), as_lines]
    assert write(sql, "table").read_text() == write(sql, "csv").read_text()
    assert pq.read_table(write(sql, "parquet")).column_names == list(as_objects)


def test_names_and_texts_that_need_quotes(write: Write) -> None:
    sql = """select 'a,"b"' || chr(10) || 'ü 早' as "x,y", '' as empty, null as missing"""
    text = 'a,"b"\nü 早'
    assert as_json(write, sql) == [{"x,y": text, "empty": "", "missing": None}]
    assert as_csv(write, sql) == [["x,y", "empty", "missing"], [text, "", ""]]
    assert write(sql, "csv").read_text(encoding="utf-8").endswith(',"",\n')  # so NULL is told apart


def test_nested_values_and_bytes(write: Write) -> None:
    sql = "select [1, 2] l, {'a': date '2024-01-01', 'b': null} s, map {'k': 1} m, '\\xff'::blob b"
    expected = {"l": [1, 2], "s": {"a": "2024-01-01", "b": None}, "m": [["k", 1]], "b": "ff"}
    assert as_json(write, sql) == [expected]
    [names, row] = as_csv(write, sql)
    assert names == list(expected)
    assert [json.loads(cell) for cell in row[:3]] == [expected[name] for name in "lsm"]


def test_no_rows(write: Write) -> None:
    sql = "select 1 as a where false"
    assert as_json(write, sql) == []
    assert as_csv(write, sql) == [["a"]]
    assert pq.read_table(write(sql, "parquet")).num_rows == 0


@pytest.mark.parametrize(
    ("sql", "format"),
    [
        ("select interval 3 months as i", "parquet"),
        ("select union_value(n := 1) as u", "parquet"),
        ("select 'infinity'::date as d", "json"),
        ("select 'infinity'::date as d", "table"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path: Path, sql: str, format: str) -> None:
    output = None if format == "table" else tmp_path / "output"
    (tmp_path / "output").write_text("from before")
    with pytest.raises(UsageError, match=rf"cannot be written as {format}.*::varchar"):
        write_table(run(sql), format, output)
    assert (tmp_path / "output").read_text() == "from before"


def test_unusual_columns_are_shown_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select interval 3 months as i, union_value(n := 7) as u, 1 as a, 2 as a, 0.1 + 0.2 as f"
    write_table(run(sql), "table", None)
    shown = capsys.readouterr().out
    assert "months=3" in shown
    assert "a_1" in shown


def test_a_long_result_is_cut_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(run(f"select i from range({MAX_SHOWN_ROWS + 5}) t(i)"), "table", None)
    shown = capsys.readouterr().out
    assert "5 more rows; --format csv shows all" in shown
    assert f" {MAX_SHOWN_ROWS - 1} " in shown
    assert f" {MAX_SHOWN_ROWS} " not in shown


def test_what_strangers_wrote_is_neither_markup_nor_control(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_table(run(r"select '[bold]x[/bold]' || chr(27) || '[31m' as t"), "table", None)
    shown = capsys.readouterr().out
    assert "[bold]x[/bold]" in shown
    assert "\x1b" not in shown


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "x.csv", tmp_path):
        with pytest.raises(StorageError, match=f"cannot write {path}"):
            write_table(run("select 1 as a"), "csv", path)


WIDE = "select " + ", ".join(f"{n} as column_{n:02}" for n in range(25)) + " from range(2)"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    def shown(sql: str, width: int = 80, is_terminal: bool = True) -> list[str]:
        file = io.StringIO()
        console = Console(file=file, width=width, force_terminal=is_terminal, no_color=True,
                          markup=False, emoji=False, highlight=False)  # fmt: skip
        monkeypatch.setattr("cli.terminal.console.out", console)
        monkeypatch.setattr("cli.terminal.tables.out", console)
        write_table(run(sql), "table", None)
        return [re.sub(r"\x1b\[\d*m", "", line) for line in file.getvalue().splitlines()]

    return shown


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        (WIDE, {"width": 400}),
        (WIDE, {"width": 400, "is_terminal": False}),
        (WIDE.replace("range(2)", "range(0)"), {}),
        ("select 'word ' || repeat('x', 300) as a", {}),  # is folded
        ("select 1 as a, 'two' as b", {}),
    ],
)
def test_other_results_stay_tables(
    shown: Callable[..., list[str]], sql: str, options: dict[str, Any]
) -> None:
    lines = shown(sql, **options)
    assert any(line.startswith("┏") for line in lines)
    assert not any("record" in line for line in lines)


def test_a_wide_result_is_one_record_below_the_other(shown: Callable[..., list[str]]) -> None:
    lines = shown(WIDE)
    assert len(lines) == 2 * 26
    assert lines[0].startswith("─ record 1 ─") and lines[26].startswith("─ record 2 ─")
    assert lines[1:4] == ["column_00 │ 0", "column_01 │ 1", "column_02 │ 2"]


def test_in_a_pipe_each_row_is_one_line_or_a_block(shown: Callable[..., list[str]]) -> None:
    """25 columns need 301 characters, and 10 columns 121: a pipe has 200."""
    lines = shown(WIDE, 200, is_terminal=False)
    assert len(lines) == 2 * 26
    assert lines[:2] == ["─ record 1 ─", "column_00 │ 0"]
    narrow = re.sub(r", 10 as .* from", " from", WIDE)
    rows = [line.strip("│").split("│") for line in shown(narrow, 200, is_terminal=False)[3:-1]]
    assert [[int(cell) for cell in row] for row in rows] == [list(range(10))] * 2
    cell = "select repeat('x', 190) as a from range(2)"
    assert sum("x" * 190 in line for line in shown(cell, 200, is_terminal=False)) == 2
    lines = shown(cell.replace("190", "300"), 200, is_terminal=False)
    assert sum("x" * 300 in line for line in lines) == 2, "a long cell is not folded"


def test_wide_rows_of_other_commands_are_blocks_too(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows("the title", [{f"column_{number:02}": number / 3 for number in range(25)}])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "the title"
    assert lines[2:4] == ["column_00 │ 0.000", "column_01 │ 0.333"]


def test_the_number_of_rows_is_returned(tmp_path: Path) -> None:
    for number in (0, 5_000):
        sql = f"select i from range({number}) t(i)"
        assert write_table(run(sql), "csv", tmp_path / "rows.csv") == number
        assert write_table(run(sql), "table", None) == number


def test_cells_of_a_record_are_shown_as_they_are(shown: Callable[..., list[str]]) -> None:
    text = "select null as n, 'a' || chr(10) || chr(27) || 'b' as t, 0.1 + 0.2 as f, '[b]' as m, "
    lines = shown(text + WIDE.removeprefix("select "))
    assert lines[1:6] == [
        "n         │ –", "t         │ a", "          │ \\x1bb", "f         │ 0.3",
        "m         │ [b]",
    ]  # fmt: skip


def test_a_long_result_says_how_many_records_are_left_out(shown: Callable[..., list[str]]) -> None:
    lines = shown(WIDE.replace("range(2)", f"range({MAX_SHOWN_ROWS + 3})"))
    assert lines[-1] == "… 3 more rows; --format csv shows all"
    assert sum("record" in line for line in lines) == MAX_SHOWN_ROWS


def test_names_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("[/title]", ["name"], [("[/cell] :cat:",), (None,)])
    out.print("[bold]line :dog:")
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("[/title]", "[/cell] :cat:", "–", "[bold]line :dog:"))


def test_a_step_of_any_name_has_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars():
        progress.report("score [/model]", 1, 1)
    assert "score [/model]" in capsys.readouterr().err
