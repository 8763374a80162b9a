import dataclasses
import datetime as dt
import gzip
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from core.corpus.partition import Seal, read_documents
from core.errors import EmptyPartition, UsageError
from core.month import Month
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.imports.dating import Dating, moment_of, month_of_name
from crawlers.imports.documents import ImportOptions
from crawlers.imports.sets import import_set

LONG = "A sentence that is long enough to be kept, whatever the format of the file it came in was. "
BY_DATE = ImportOptions(Dating())
BY_NAME = ImportOptions(Dating(by_name=True))


def long(mark: object) -> str:
    return f"{mark}: {LONG}{LONG}"


def write(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


class Imported:
    def __init__(self, store: Store, seals: tuple[Seal, ...], failures: tuple[str, ...]) -> None:
        self.seals = {str(seal.partition.month or "undated"): seal for seal in seals}
        self.failures = failures
        self.rows = {
            month: [row for batch in read_documents(store, seal) for row in batch.to_pylist()]
            for month, seal in self.seals.items()
        }
        self.texts = {
            month: [row["text"].split(":")[0] for row in rows] for month, rows in self.rows.items()
        }
        packed = [store.read_bytes(f"{seal.folder}/dropped.jsonl.zst") for seal in seals]
        self.drops = [
            json.loads(line) for each in packed for line in zstandard.decompress(each).splitlines()
        ]
        self.reasons = [drop["reason"] for drop in self.drops]
        self.details = "\n".join(drop["detail"] for drop in self.drops)


@pytest.fixture
def imports(store: Store, tmp_path: Path) -> Callable[..., Imported]:
    def run(*paths: Path, options: ImportOptions = BY_DATE) -> Imported:
        options = dataclasses.replace(options, scratch=tmp_path / "scratch")
        found = import_set(paths, "news", store, options)
        assert not list((tmp_path / "scratch" / "hygiene").iterdir())  # nothing is left behind
        return Imported(store, found.seals, found.failures)

    return run


Imports = Callable[..., Imported]


def test_a_parquet_file_a_month(imports: Imports, tmp_path: Path) -> None:
    """RealTimeData: the month is in the name; BBC's columns, of which some are of no use here."""
    for month in ("2024-05", "2024-06"):
        (tmp_path / "set" / month).mkdir(parents=True)
        table = pa.table(
            {
                "title": ["T"] * 2,
                "published_date": [f"{month}-03", f"{month}-04"],
                "authors": [["x"], None],
                "content": [long(f"{month} 0"), long(f"{month} 1")],
                "link": ["http://example.org/1", None],
            }
        )
        pq.write_table(table, tmp_path / "set" / month / "train.parquet")
    columns = {"text": "content", "url": "link", "date": "published_date"}
    found = imports(tmp_path / "set", options=ImportOptions(Dating(by_name=True), columns))
    assert found.texts == {m: [f"{m} 0", f"{m} 1"] for m in ("2024-05", "2024-06")}
    row = found.rows["2024-06"][0]
    assert (row["url"], row["title"]) == ("http://example.org/1", "T")
    assert row["event_time"] == dt.datetime(2024, 6, 3, tzinfo=dt.UTC)
    assert json.loads(row["extra"]) == {"record": "2024-06/train.parquet:0", "date": "2024-06-03"}
    assert row["native_id"] == "2024-06/train.parquet:0"
    again = imports(tmp_path / "set", options=ImportOptions(Dating(by_name=True), columns))
    assert again.seals == found.seals


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.gz", "a.ndjson.zst", "a.json", "a.csv", "a.tsv.gz"]
)
def test_many_months_in_one_file(name: str, imports: Imports, tmp_path: Path) -> None:
    days = ["2024-05-31T23:59:59Z", "2024-06-01", "2024-05-01", "2024-06-30T22:00:00-02:00"]
    rows = [{"when": day, "text": long(f'{i} \u00e9\n"')} for i, day in enumerate(days)]
    if "json" in name:
        text = json.dumps(rows, indent=1) if name == "a.json" else lines(rows)
    else:
        mark = "\t" if "tsv" in name else ","
        quoted = [
            f'{row["when"]}{mark}"{row["text"].replace(chr(34), chr(34) * 2)}"' for row in rows
        ]
        text = "\n".join([f"\ufeffwhen{mark}text", *quoted])
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(name).suffix, bytes)
    path = write(tmp_path / name, pack(text.encode()))
    found = imports(path, options=ImportOptions(Dating(), {"date": "when"}))
    assert {month: len(texts) for month, texts in found.texts.items()} == {
        "2024-05": 2, "2024-06": 1, "2024-07": 1,
    }  # fmt: skip
    assert found.rows["2024-07"][0]["text"] == rows[3]["text"]
    assert not found.drops


def test_old_timestamps_beyond_nanoseconds_are_no_other_month(
    imports: Imports, tmp_path: Path
) -> None:
    """Spark and Impala write INT96, which Arrow reads as nanoseconds: 9999-12 became 1816-03."""
    dates = pa.array(["9999-12-23 23:59:59", "2024-01-05 00:00:00"]).cast(pa.timestamp("us"))
    texts = pa.array([long("open end"), long("a")])
    table = pa.table([texts, dates], names=["text", "date"])
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    found = imports(path)
    assert found.texts == {"2024-01": ["a"]}
    assert found.reasons == ["no_date"]


def test_a_month_column_and_an_undated_set(imports: Imports, tmp_path: Path) -> None:
    rows = [{"content": long(i), "m": m} for i, m in enumerate(["2024-05", "2024-06-30", None, 3])]
    path = write(tmp_path / "a.jsonl", lines(rows))
    found = imports(path, options=ImportOptions(Dating(month_column="m"), {"text": "content"}))
    assert found.texts == {"2024-05": ["0"], "2024-06": ["1"]}
    assert found.reasons == ["no_date", "no_date"]
    assert "a.jsonl:3: m is None" in found.details
    undated = imports(path, options=ImportOptions(Dating(is_undated=True), {"text": "content"}))
    assert undated.texts == {"undated": ["0", "1", "2", "3"]}


A, B, C = ({"text": long(each), "date": "2024-05-01"} for each in "abc")
MAY = 1_714_521_600 * 10**6


def parquet(
    rows: list[dict[str, Any]], times: list[int], zone: str | None = None, twin: str = "id"
) -> bytes:
    out = io.BytesIO()
    texts, dates = (
        pa.array([row["text"] for row in rows]),
        pa.array(times, pa.timestamp("us", zone)),
    )
    pq.write_table(pa.Table.from_arrays([texts, texts, dates], ["text", twin, "date"]), out)
    return out.getvalue()


def bomb(text: str | None, times: int) -> bytes:
    """Return a file of some kilobytes that stands for far more."""
    out = io.BytesIO()
    texts = pa.array([text], pa.string())
    if text is not None and times > 1:
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * times), texts)
    elif times > 1:
        texts = pa.nulls(times, pa.string())
    pq.write_table(pa.table({"text": texts}), out, compression="zstd", store_schema=False)
    return out.getvalue()


LINES = lines([A, B, C]).encode()
LINE = len(LINES) // 3
MEMBERS = [gzip.compress(lines([each]).encode()) for each in (A, B, C)]
CSV_ = "date,text\n" + "".join(f'2024-05-01,"{each["text"]}"\n' for each in (A, B, C))
DAMAGED: dict[str, tuple[str, bytes, list[str], str]] = {
    "cut line": ("a.jsonl", LINES[:-30], [*"ab"], f"line 3 (byte {2 * LINE}) is not"),
    "bad line": ("a.jsonl", LINES.replace(b'{"text": "b', b'{"text" "b'), [*"ac"], "line 2 "),
    "not UTF-8": ("a.jsonl", LINES.replace(b"b: A", b"b: \xe9"), [*"ac"], f"byte {LINE + 13} "),
    "half of a character": ("a.jsonl", LINES.replace(b"b: A", b"\\ud83d"), [*"ac"], "a.jsonl:2"),
    "number": ("a.jsonl", LINES + b"7\n", [*"abc"], "neither an object nor a string"),
    "deep": ("a.jsonl", LINES + b"[" * 99999, [*"abc"], f"line 4 (byte {3 * LINE})"),
    "list text": ("a.jsonl", LINES + b'{"text": [1]}', [*"abc"], "column `text` is a list"),
    "cut list": ("a.json", json.dumps([A, B, C])[:-9].encode(), [*"ab"], "record 2 is not JSON"),
    "bad list": ("a.json", json.dumps([A, B, C]).replace('"b', "b").encode(), ["a"], "record 1 "),
    "list of what": ("a.json", json.dumps([A, 3, C]).encode(), [*"ac"], "record 1 is a number"),
    "cut gzip": ("a.jsonl.gz", gzip.compress(LINES)[:-9], [*"abc"], "was cut after byte"),
    "cut in a member": ("a.jsonl.gz", b"".join(MEMBERS)[:-20], [*"ab"], "was cut after byte"),
    "bad member": (
        "a.jsonl.gz", MEMBERS[0] + MEMBERS[1][:30] + b"\xff" * 40 + MEMBERS[1][70:] + MEMBERS[2],
        [*"ac"], "of the packed file is damaged",
    ),
    "cut zstd": ("a.jsonl.zst", zstandard.compress(LINES)[:-3], [], "was cut after byte"),
    "no zstd": ("a.jsonl.zst", zstandard.compress(LINES) + b"junk", [*"abc"], "damaged"),
    "open quote": ("a.csv", CSV_.replace('b: ', 'b"" "').encode(), [*"ac"], "a.csv: line 3: "),
    "open quote at the end": ("a.csv", (CSV_ + '2024-05-01,"x').encode(), [*"abc"], "line 5"),
    "too few fields": ("a.csv", CSV_.replace('2024-05-01,"b', '"b').encode(), [*"ac"], "1 fields"),
    "CSV not UTF-8": ("a.csv", CSV_.replace("b: A", "\xe9").encode("latin-1"), [*"ac"], "a.csv:2"),
    "no Parquet": ("a.parquet", b"PAR1", [], "not Parquet, or cut"),
    "far date": ("a.parquet", parquet([A, B], [10**18, MAY]), ["b"], "a time out of range"),
    "odd zone": ("a.parquet", parquet([A], [MAY], "Mars/Base"), ["a"], ""),
    "two texts": ("a.parquet", parquet([A], [MAY], None, "text"), [], "two columns are called"),
    "name not UTF-8": ("a.parquet", parquet([A], [MAY]).replace(b"date", b"\xff"*4), [], "utf-8"),
    "zstd bomb": ("a.jsonl.zst", zstandard.compress(bytes(2**23)), [], "so it is no text"),
    "rows of nothing": ("a.parquet", bomb(None, 2**12), [], "far more text or rows"),
    "one text often": ("a.parquet", bomb("x" * 2**16, 2**8), [], "far more text or rows"),
    "a text of one letter": ("a.parquet", bomb("x" * 2**23, 1), [], "far larger than the file"),
    "no date": ("a.jsonl", LINES + lines([{"text": "x"}]).encode(), [*"abc"], "date is None"),
    "not over": ("a.jsonl", LINES + LINES[:LINE].replace(b"2024", b"2150"), [*"abc"], "not over"),
    "other file": ("b.pdf", b"%PDF", [], "b.pdf: PDF; make a text file of it first: pdftotext"),
    "other file too": ("b.doc", b"x", [], ".doc; known: .parquet"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_good_rows_are_kept_and_bad_ones_located(
    case: str, imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("streams", "tables"):
        monkeypatch.setattr(f"crawlers.imports.{module}.FREE_BYTES", 2**20)
    name, data, kept, says = DAMAGED[case]
    extra = write(tmp_path / "whole.jsonl", lines([{"text": long("whole"), "date": "2024-05-02"}]))
    found = imports(write(tmp_path / name, data), extra)
    assert found.texts == {"2024-05": [*kept, "whole"]}
    assert says in found.details
    assert found.seals["2024-05"].manifest["requested"] == len(kept) + 1 + len(found.drops)


def test_a_stated_month_needs_no_date_of_the_row(imports: Imports, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", parquet([A, B], [10**18, MAY]))
    found = imports(path, options=ImportOptions(Dating(month=Month("2024-05"))))
    assert found.texts == {"2024-05": ["a", "b"]}


ROW = "a line that is long enough to be taken for a text by itself, were it not within quotation.\n"
CELLS = {
    f'"{ROW * 60}"': "a.csv: lines 3 to 63: 4",
    f'"{ROW.strip() * 200_000}"': "a.csv: lines 3 to 3: ",
    '"' + f'so ""called"" {ROW}' * 60 + '"': "lines 3 to 63: 4",
    f'"{ROW * 60}': "a quotation mark is not closed",
}


@pytest.mark.parametrize("cell", CELLS, ids=["lines", "line", "marks", "open"])
def test_a_cell_that_is_too_long_is_one_row(cell: str, imports: Imports, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f'text\n"{long("a")}"\n{cell}\n"{long("b")}"\n')
    found = imports(path, options=ImportOptions(Dating(is_undated=True), max_document_bytes=4000))
    assert (found.texts, found.reasons) == ({"undated": [*"ab"]}, ["too_long"])
    assert CELLS[cell] in found.details


def test_a_column_that_no_row_has_is_refused(imports: Imports, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", LINES)
    for options in (
        ImportOptions(columns={"url": "link"}),
        ImportOptions(Dating(month_column="link")),
    ):
        with pytest.raises(UsageError, match="no row has a column `link`"):
            imports(path, options=options)
    book = write(tmp_path / "a.txt", long("book"))
    found = imports(book, path, options=ImportOptions(Dating(month_column="date")))
    assert (found.texts, found.reasons) == ({"2024-05": [*"abc"]}, ["no_date"])


def test_a_damaged_row_group_loses_itself_only(imports: Imports, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [long(f"{i} {'x' * i}") for i in range(9)]
    table = pa.table({"text": texts, "date": ["2024-05-01"] * 9})
    pq.write_table(
        table,
        path,
        row_group_size=3,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    data = path.read_bytes()
    place = data.index(b"3 xxx")
    path.write_bytes(data[: place - 16] + b"\xff" * 12 + data[place - 4 :])
    found = imports(path)
    assert [text.split()[0] for text in found.texts["2024-05"]] == list("012678")
    assert [drop["native_id"] for drop in found.drops] == [f"a.parquet:{i}" for i in (3, 4, 5)]
    broken = pa.array([long("a").encode(), b"\xff\xfe", long("c").encode()]).view(pa.string())
    pq.write_table(pa.table({"text": broken, "date": ["2024-06-01"] * 3}), tmp_path / "b.parquet")
    found = imports(tmp_path / "b.parquet")
    assert (found.texts, found.reasons) == ({"2024-06": [*"ac"]}, ["damaged"])


def test_a_repeated_id_loses_no_row(imports: Imports, tmp_path: Path) -> None:
    rows = [{**A, "id": 7}, {**B, "id": 7}, {**C, "id": "x"}, {**A, "id": "y"}]
    path = write(tmp_path / "a.jsonl", lines(rows))
    found = imports(path)
    assert [row["native_id"] for row in found.rows["2024-05"]] == ["7", "a.jsonl:2", "x", "y"]
    replaced = ImportOptions(Dating(), clean=True, replace=True)
    found = imports(path, options=replaced)
    assert found.texts == {"2024-05": [*"abc"]}
    assert found.reasons == ["exact_dup"]


NAMES = {
    # names in the repository of Uncheatable Eval, github.com/Jellyfish042/uncheatable_eval, data/
    "arxiv_computer_science_20250701to20250715.json": "2025-07",
    "bbc_news_20240915to20240930.json": "2024-09",
    "bbc_news_20240501to20240515_dev.json": "2024-05",
    "legacies/bbc_news_240322to240329.json": "2024-03",
    "github_cpp_240401to240406.json": "2024-04",
    "bbc_news_240125_to_240203.json": "spans 2024-01 to 2024-02",
    "dev.json": "no month",
    # folders of RealTimeData's Parquet branch, and what users call their copies
    "2024-05/train/0000.parquet": "2024-05",
    "bbc_2024_05.parquet": "2024-05",
    "202405.csv": "2024-05",
    "CC-MAIN-2024-10/0001.jsonl": "no month",
    "build_123456789.json": "no month",
    "2023/2024-05.json": "2024-05",
}


@pytest.mark.parametrize("name", NAMES)
def test_months_in_names(name: str) -> None:
    found = month_of_name(name)
    if isinstance(found, Drop):
        assert NAMES[name] in found.detail
    else:
        assert found == Month(NAMES[name])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-05-01", "2024-05-01 00:00"), ("2024-05-01T00:30:00+02:00", "2024-04-30 22:30"),
        (dt.date(2024, 5, 1), "2024-05-01 00:00"), (dt.datetime(2024, 5, 1, 2), "2024-05-01 02:00"),  # noqa: DTZ001
        ("Mon, 06 May 2024 10:00:00 GMT", "2024-05-06 10:00"), (1714521600, "2024-05-01 00:00"),
        (1714521600000.0, "2024-05-01 00:00"), ("yesterday", None), ("", None), (True, None),
        (3, None), (float("nan"), None), (float("inf"), None), ("0001-01-01", None), ([1], None),
        ("Mon, 99 May 99999 10:00:00 GMT", None), ("1714521600", "2024-05-01 00:00"),
        (" 1714521600.0 ", "2024-05-01 00:00"), ("1714521600000", "2024-05-01 00:00"),
        ("1.7145216e+18", "2024-05-01 00:00"), (1714521600123456, "2024-05-01 00:00"),
        (Decimal(1714521600), "2024-05-01 00:00"), (Decimal("NaN"), None), ("170", None),
        ("2024-05-01 03:30:00 UTC", "2024-05-01 03:30"), ("2024/05/01", "2024-05-01 00:00"),
        ("2024-04-30 24:00", "2024-05-01 00:00"), ("2 Sept 2024", "2024-09-02 00:00"),
        ("2024-05-01 00:30:00 CEST", "2024-04-30 22:30"), ("2024-05-01 00:30:00 IST", None),
        (20240501, "2024-05-01 00:00"), ("20240501033000", "2024-05-01 03:30"),
        (20240501033000, "2024-05-01 03:30"), ("20241301033000", None), (20240532, None),
        ("1712010101200", "2024-04-01 22:21"),  # as digits of a date, it would be of 1712
    ],
)  # fmt: skip
def test_dates_of_many_kinds(value: object, expected: str | None) -> None:
    found = moment_of(value)
    assert (found and f"{found:%Y-%m-%d %H:%M}") == expected


def test_dates_that_are_no_dates_of_texts(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlers.imports.sets.MAX_PARTITIONS", 3)
    rows = [{**A, "date": f"1800-0{month}-01"} for month in (1, 2, 3, 1, 5)]
    with pytest.raises(
        UsageError, match="jsonl:5 is of news 1800-05, after rows of 3 other months"
    ):
        imports(write(tmp_path / "a.jsonl", lines(rows)))


def test_nothing_to_import(imports: Imports, tmp_path: Path) -> None:
    with pytest.raises(EmptyPartition, match="unknown_format': 1.*xml; known"):
        imports(write(tmp_path / "a.xml", "<a/>"))
    with pytest.raises(UsageError, match="no file or folder"):
        imports(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyPartition, match="nothing to keep"):
        imports(tmp_path / "empty")
    with pytest.raises(UsageError, match=r"two files are called a\.jsonl"):
        imports(write(tmp_path / "a" / "a.jsonl", LINES), write(tmp_path / "b" / "a.jsonl", LINES))


def test_a_pointer_of_git_lfs_is_no_text(imports: Imports, tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    write(tmp_path / "in" / "a.jsonl", lines([A]))
    for name in ("b.parquet", "c.txt", "d.jsonl", "e.csv"):
        write(tmp_path / "in" / name, pointer.encode())
    found = imports(tmp_path / "in")
    assert found.reasons == ["damaged"] * 4
