import datetime as dt
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.corpus.partition import FIRST_REGIME, Partition, Seal, list_sealed, read_documents
from core.errors import (
    EmptyPartition,
    FutureMonth,
    MalformedInput,
    PartitionSealed,
    TidemarkError,
    UnknownName,
    UsageError,
)
from core.month import Month
from core.storage.store import Store
from crawlers.crawling.manifest import cleaned_regime
from crawlers.imports.texts import ImportOptions, import_texts

JUNE = Partition("texts", Month("2024-06"))
LONG = "A sentence that is long enough to be kept, whatever the format of the file it came in was. "


def _long(mark: object) -> str:
    return f"{mark}: {LONG}{LONG}"


def _rows(store: Store, seal: Seal) -> list[dict[str, Any]]:
    return [row for batch in read_documents(store, seal) for row in batch.to_pylist()]


def _write(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def _json_list(path: Path, texts: list[str]) -> Path:
    return _write(path.with_suffix(".json"), json.dumps(texts))


def _json_lines(path: Path, texts: list[str]) -> Path:
    lines = (json.dumps({"text": t} if i % 2 else t) for i, t in enumerate(texts))
    return _write(path.with_suffix(".jsonl"), "\n".join(lines))


def _parquet(path: Path, texts: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": texts}), path.with_suffix(".parquet"), row_group_size=3)
    return path.with_suffix(".parquet")


def _folder(path: Path, texts: list[str]) -> Path:
    for index, text in enumerate(texts):
        _write(path / f"{index // 3:03d}" / f"{index:03d}.txt", text)
    return path


WRITERS: dict[str, Callable[[Path, list[str]], Path]] = {
    "json-list": _json_list,
    "jsonl": _json_lines,
    "parquet": _parquet,
    "folder": _folder,
}
ODD_TEXTS = [
    _long("\ufeff\x00\x1b\r\n\x85\u2028\u200b e\u0301 \U0001f600 <b>&amp;</b>\t"),
    "  " + _long("margins") + " \n\n",
    "\\ud83d " + _long('"quotes", [brackets] and {braces}'),
]


@pytest.mark.parametrize("format_", WRITERS)
def test_each_format_keeps_code_points_and_order(
    format_: str, store: Store, tmp_path: Path
) -> None:
    texts = ODD_TEXTS + [_long(i) for i in range(6)]
    here, there = (WRITERS[format_](tmp_path / place / "input", texts) for place in ("a", "b"))
    seal = import_texts(here, JUNE, store, ImportOptions())
    assert import_texts(there, JUNE, store, ImportOptions(format=format_)) == seal
    rows = _rows(store, seal)
    assert [row["text"] for row in rows] == texts
    assert {row["date_kind"] for row in rows} == {"given"}
    assert {row["month"] for row in rows} == {dt.date(2024, 6, 1)}
    assert {row["event_time"] for row in rows} == {row["retrieved_at"] for row in rows} == {None}
    assert {row["licence"] for row in rows} == {"LicenseRef-unknown"}
    assert len({row["document_id"] for row in rows}) == len(texts)
    assert (seal.manifest["format"], seal.manifest["kept"]) == (format_, len(texts))


@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None
)
@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=5), escape=st.booleans())
def test_any_text_survives_json(
    texts: list[str], escape: bool, store: Store, tmp_path: Path
) -> None:
    texts = [f"{i} {LONG}{LONG}{text}" for i, text in enumerate(texts)]
    path = _write(tmp_path / "a.json", json.dumps(texts, ensure_ascii=escape, indent=1))
    seal = import_texts(path, JUNE, store, ImportOptions(replace=True))
    assert [row["text"] for row in _rows(store, seal)] == texts


def test_undated_texts_are_kept_as_often_as_they_come(store: Store, tmp_path: Path) -> None:
    path = _json_list(tmp_path / "a", [_long(1), _long(1)])
    books = Partition("books", None)
    rows = _rows(store, import_texts(path, books, store, ImportOptions()))
    assert [row["text"] for row in rows] == [_long(1)] * 2  # unless cleaning is asked for
    assert {(row["month"], row["date_kind"]) for row in rows} == {(None, "none")}
    with pytest.raises(PartitionSealed, match="--replace"):
        import_texts(_json_list(path, [_long(2)]), books, store, ImportOptions())


@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_fields_of_records(format_: str, store: Store, tmp_path: Path) -> None:
    entry = {
        "id": 17, "text": _long(1), "title": "A title", "url": "https://example.org/1",
        "date": "2024-06-03", "language": "code:python", "licence": "MIT", "category": "code",
    }  # fmt: skip
    if format_ == "jsonl":
        path = _write(tmp_path / "a.jsonl", json.dumps({**entry, "unknown": [1]}) + "\n\n")
    else:
        path = tmp_path / "a.parquet"
        table = pa.Table.from_pylist([{**entry, "date": dt.date(2024, 6, 3), "unknown": [1]}])
        pq.write_table(table, path)
    (row,) = _rows(store, import_texts(path, JUNE, store, ImportOptions()))
    for name in ("title", "url", "language", "licence", "category"):
        assert row[name] == entry[name]
    assert row["native_id"] == row["cluster_id"] == "17"
    assert json.loads(row["extra"]) == {"date": "2024-06-03"}


@pytest.mark.parametrize("format_", ["json", "jsonl", "parquet"])
def test_fields_of_other_names(format_: str, store: Store, tmp_path: Path) -> None:
    """llm-compression names its text ``content``."""
    entry = {"content": _long(1), "key": "k1", "subset": "cc", "meta": {"text": "no"}}
    path = tmp_path / f"a.{format_}"
    if "json" in format_:
        _write(path, json.dumps(entry if format_ == "jsonl" else [entry]) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([entry]), path)
    with pytest.raises(MalformedInput, match="no column `text`.*content"):
        import_texts(path, JUNE, store, ImportOptions())
    names = {"text": "content", "id": "key", "category": "subset"}
    (row,) = _rows(store, import_texts(path, JUNE, store, ImportOptions(columns=names)))
    assert (row["text"], row["native_id"], row["category"]) == (_long(1), "k1", "cc")


def test_options_fill_what_records_lack(store: Store, tmp_path: Path) -> None:
    options = ImportOptions(licence="CC0-1.0", language="de", clean=True)
    path = _json_list(tmp_path / "a", ["\ufeff<b>" + _long(1) + "\r\n"])
    (row,) = _rows(store, import_texts(path, JUNE, store, options))
    assert (row["licence"], row["language"], row["title"]) == ("CC0-1.0", "de", None)
    assert row["text"] == _long(1).strip()


@pytest.mark.parametrize(
    ("clean", "label", "regime"),
    [(False, None, FIRST_REGIME), (False, "scan", "scan"),
     (True, None, cleaned_regime(None)), (True, "scan", cleaned_regime("scan"))],
)  # fmt: skip
def test_an_import_states_its_regime(
    store: Store, tmp_path: Path, clean: bool, label: str | None, regime: str
) -> None:
    path = _json_list(tmp_path / "a", [_long(1)])
    seal = import_texts(path, JUNE, store, ImportOptions(clean=clean, regime=label))
    assert seal.regime == regime


def test_drops_are_counted_and_named(store: Store, tmp_path: Path) -> None:
    texts = ["", " \n", "short", _long(1), _long(1), "x" * 5001, _long(2)]
    path = _json_list(tmp_path / "a", texts)
    options = ImportOptions(max_document_bytes=5000, clean=True)
    seal = import_texts(path, JUNE, store, options)
    assert seal.manifest["requested"] == 7
    assert seal.manifest["kept"] == seal.num_documents == 2
    assert seal.manifest["dropped"] == {"empty": 2, "too_short": 1, "exact_dup": 1, "too_long": 1}
    stored = store.read_bytes(f"{JUNE.path}/dropped.jsonl.zst")
    drops = [json.loads(line) for line in zstandard.decompress(stored).splitlines()]
    assert [drop["native_id"] for drop in drops] == [f"a.json:{i}" for i in (0, 1, 2, 4, 5)]
    assert "same text as a.json:3" in drops[3]["detail"]
    for part in ("a.json:5: ", "5001 bytes", "TIDEMARK_MAX_DOCUMENT_BYTES"):
        assert part in drops[4]["detail"]


@pytest.mark.parametrize("format_", WRITERS)
def test_a_document_of_20_mb_on_one_line(format_: str, store: Store, tmp_path: Path) -> None:
    texts = [_long(1), "word " * 4_000_000, _long(2)]
    path = WRITERS[format_](tmp_path / "a", texts)
    seal = import_texts(path, JUNE, store, ImportOptions())
    assert [row["text"] for row in _rows(store, seal)] == [_long(1), _long(2)]
    assert seal.manifest["dropped"] == {"too_long": 1}
    (drop,) = zstandard.decompress(store.read_bytes(f"{JUNE.path}/dropped.jsonl.zst")).splitlines()
    assert b"20000" in drop
    assert b"TIDEMARK_MAX_DOCUMENT_BYTES" in drop


@pytest.mark.parametrize("texts", [[], [""], ["short", ""]])
@pytest.mark.parametrize("format_", WRITERS)
def test_nothing_to_keep_is_an_error(
    format_: str, texts: list[str], store: Store, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    if format_ == "parquet":
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), path)
    else:
        path = WRITERS[format_](tmp_path / "a", texts)
    with pytest.raises(EmptyPartition, match=f"{len(texts)} requested, 0 kept"):
        import_texts(path, JUNE, store, ImportOptions(format=format_))
    assert list_sealed(store) == []


GOOD = json.dumps(_long(1))
MALFORMED = {
    "truncated": ("a.json", f'[{GOOD}, "x', "record 1 is not JSON.*Unterminated"),
    "ends early": ("a.json", f"[{GOOD}", "after record 0, found the end"),
    "ends after comma": ("a.json", f"[{GOOD},", "record 1 is not JSON"),
    "trailing comma": ("a.json", f"[{GOOD},]", "record 1 is not JSON"),
    "empty file": ("a.json", "", "expected a JSON list"),
    "no comma": ("a.json", f"[{GOOD} {GOOD}]", "after record 0, found"),
    "more after the end": ("a.json", f"[{GOOD}] {GOOD}", "more after the list's end"),
    "number": ("a.json", f"[{GOOD}, 3]", "record 1 is a number"),
    "null": ("a.json", f"[{GOOD}, null]", "record 1 is null"),
    "nested list": ("a.json", f"[[{GOOD}]]", "record 0 is a list"),
    "deep": ("a.json", "[" * 100_000, "record 0 is nested too deeply"),
    "NaN": ("a.json", f"[{GOOD}, NaN]", "record 1 is not JSON: NaN"),
    "control character": ("a.json", f'[{GOOD}, "a\nb"]', "record 1 is not JSON.*control"),
    "surrogate": ("a.json", f'[{GOOD}, "ab\\ud83d"]', r"a.json:1: character 2 .*U\+D83D"),
    "not UTF-8": ("a.json", b'["\xe9"]', "byte 2 .0xe9. is not UTF-8"),
    "not UTF-8 after a mark": ("a.json", b'\xef\xbb\xbf["\xe9"]', "byte 5 .0xe9. is not UTF-8"),
    "UTF-16": ("a.json", '["a"]'.encode("utf-16"), "byte 0 .0xff. is not UTF-8"),
    "line: truncated": ("a.jsonl", f'{GOOD}\n{{"text": "x', r"line 2 .* is not JSON"),
    "line: no text": (
        "a.jsonl",
        f'{GOOD}\n\n{{"body": 1, "a": 2}}',
        ":3: no column `text`.*body, a",
    ),
    "line: list": ("a.jsonl", f"[{GOOD}]", "line 1 .* is a list"),
    "line: two values": ("a.jsonl", f"{GOOD} {GOOD}", "line 1 .* Extra data"),
    "line: NaN": ("a.jsonl", f'{{"text": {GOOD}, "x": NaN}}', "line 1 .* is not JSON: NaN"),
    "line: surrogate": ("a.jsonl", f'{GOOD}\n{{"text": "\\udc00"}}', "a.jsonl:2: character 0"),
    "line: surrogate in title": ("a.jsonl", f'{{"text": {GOOD}, "title": "\\udc00"}}', "jsonl:1: "),
    "line: title": ("a.jsonl", f'{{"text": {GOOD}, "title": 3}}', "jsonl:1: `title` is a number"),
    "line: id": ("a.jsonl", f'{{"text": {GOOD}, "id": [3]}}', "jsonl:1: `id` is a list"),
    "line: not UTF-8": ("a.jsonl", GOOD.encode() + b'\n"ab\xff"', f"byte {len(GOOD) + 4} .0xff."),
    "line: pretty-printed": ("a.json", f'{{\n"text": {GOOD}\n}}', "line 1 .* is not JSON"),
    "parquet: not": ("a.parquet", "PAR1 but no more", "not Parquet, or cut"),
    "parquet: empty": ("a.parquet", "", "not Parquet, or cut"),
    "folder: not UTF-8": ("folder/b.txt", b"abc\xff", r"b\.txt: byte 3 .0xff. is not UTF-8"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused(name: str, store: Store, tmp_path: Path) -> None:
    file, data, says = MALFORMED[name]
    path = _write(tmp_path / file, data)
    path = tmp_path / "folder" if file.startswith("folder") else path
    with pytest.raises(MalformedInput, match=says) as caught:
        import_texts(path, JUNE, store, ImportOptions())
    assert Path(file).name in str(caught.value)
    assert not Path(store.root, "corpus").exists() or store.list(f"{JUNE.path}/*") == []


@pytest.mark.parametrize("second", [1, 2])
def test_one_id_for_two_records_is_refused(store: Store, tmp_path: Path, second: int) -> None:
    lines = [{"id": "a", "text": _long(1)}, {"id": "a", "text": _long(second)}]
    path = _write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))
    with pytest.raises(MalformedInput, match="a.jsonl:2 has the id 'a' of a.jsonl:1"):
        import_texts(path, JUNE, store, ImportOptions())


def test_parquet_columns(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": ["x"]}), path)
    with pytest.raises(MalformedInput, match="no column `text`.*: body"):
        import_texts(path, JUNE, store, ImportOptions())
    for values in (pa.array([b"x"]), pa.array([["x"]]), pa.array([1])):
        pq.write_table(pa.table({"text": values}), path)
        with pytest.raises(MalformedInput, match="column `text` is .*; expected strings"):
            import_texts(path, JUNE, store, ImportOptions())
    assert list_sealed(store) == []
    texts = [_long(1), None, _long(2)]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        pq.write_table(pa.table({"text": pa.array(texts, pa.string()).cast(kind)}), path)
        seal = import_texts(path, JUNE, store, ImportOptions())
        assert seal.manifest["dropped"] == {"empty": 1}


@pytest.mark.parametrize("format_", ["auto", "jsonl", "folder", "html"])
@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_a_pipe_or_device_is_named_as_one(
    name: str, format_: str, store: Store, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MalformedInput, match="is a pipe, a device or a socket"):
        import_texts(tmp_path / name, JUNE, store, ImportOptions(format=format_))


def test_a_folder_is_read_with_care(store: Store, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "in", [_long(i) for i in range(4)])
    _write(tmp_path / "outside" / "secret.txt", _long("secret"))
    (folder / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (folder / "linked").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    _write(folder / ".git" / "config", b"\xff")
    _write(folder / ".DS_Store", b"\xff")
    os.mkfifo(folder / "pipe")
    seal = import_texts(folder, JUNE, store, ImportOptions())
    names = [row["native_id"] for row in _rows(store, seal)]
    assert names == ["000/000.txt", "000/001.txt", "000/002.txt", "001/003.txt"]


@pytest.mark.parametrize(
    ("name", "start", "format_"),
    [
        ("a", "\ufeff [", "json-list"), ("a.json", '{"text": ', "jsonl"), ("a.txt", '"', "jsonl"),
        ("a.NDJSON", '{"text": ', "jsonl"),
    ],
)  # fmt: skip
def test_formats_are_recognised(
    name: str, start: str, format_: str, store: Store, tmp_path: Path
) -> None:
    end = {"[": "]", ":": "}"}.get(start.strip()[-1], "")
    text = _long(1) if start == '"' else json.dumps(_long(1))
    path = _write(tmp_path / name, start + text + ('"' if start == '"' else end))
    assert import_texts(path, JUNE, store, ImportOptions()).manifest["format"] == format_


def test_requests_that_cannot_be_meant(store: Store, tmp_path: Path) -> None:
    def refuses(error: type[TidemarkError], says: str, **changes: Any) -> None:
        given: dict[str, Any] = {"path": path, "partition": JUNE, "options": ImportOptions()}
        with pytest.raises(error, match=says):
            import_texts(store=store, **{**given, **changes})

    path, folder = _json_list(tmp_path / "a", [_long(1)]), _folder(tmp_path / "f", [_long(1)])
    refuses(UsageError, "no file or folder", path=tmp_path / "nowhere.json")
    refuses(UnknownName, "unknown format 'csv'", options=ImportOptions(format="csv"))
    refuses(
        UsageError,
        "no fields to name",
        path=folder,
        options=ImportOptions(columns={"text": "content"}),
    )
    lines = _write(tmp_path / "a.jsonl", "{}")
    refuses(
        UnknownName, "field 'body'", path=lines, options=ImportOptions(columns={"body": "content"})
    )
    refuses(UsageError, "is no folder", options=ImportOptions(format="folder"))
    refuses(UsageError, "is a folder", path=tmp_path, options=ImportOptions(format="jsonl"))
    refuses(UsageError, "cannot tell the format", path=_write(tmp_path / "b.txt", "plain"))
    refuses(FutureMonth, "not over", partition=Partition("texts", Month("2999-01")))
    refuses(UsageError, "needs a name", partition=Partition(" ", None))
    refuses(UsageError, "import each file by itself", path=_json_list(tmp_path / "c/d", []).parent)
    assert list_sealed(store) == []


def test_published_lists_come_in_whole(shared: Path, store: Store) -> None:
    path = sorted((shared / "data" / "texts").glob("*.json"))[0]
    seal = import_texts(path, JUNE, store, ImportOptions())
    texts = json.loads(path.read_text(encoding="utf-8"))
    kept = [row["text"] for row in _rows(store, seal)]
    assert kept == list(dict.fromkeys(text for text in texts if len(text) >= 100))
    assert seal.manifest["requested"] == len(texts)
