"""A column of an imported set gives the sources of its rows."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from core.corpus.partition import list_sealed, read_documents
from core.errors import EmptyPartition, StorageError, UsageError
from core.month import Month
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.imports.dating import Dating
from crawlers.imports.documents import ImportOptions
from crawlers.imports.naming import source_of
from crawlers.imports.sets import Outcome, import_set
from crawlers.imports.tables import Row

TEXT = "Sand and tide, and the mark that the sea leaves on the beach when it goes out. " * 3
# Fifteen values, as a monthly file of Uncheatable Eval has.
CATEGORIES = [
    "ao3_chinese", "ao3_english", "arxiv_cs", "arxiv_math", "arxiv_physics", "bbc_news", "biorxiv",
    "github_cpp", "github_javascript", "github_markdown", "github_python", "news_english",
    "reddit", "wikipedia_english", "stack exchange",
]  # fmt: skip
MAY = Month("2024-05")
Import = Callable[..., Outcome]


@pytest.fixture
def imports(store: Store, tmp_path: Path) -> Import:
    def run(path: Path, month: Month | None = MAY, source: str = "ue") -> Outcome:
        options = ImportOptions(
            Dating(month), {"text": "content"}, "category", scratch=tmp_path / "scratch"
        )
        return import_set([path], source, store, options)

    return run


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_fifteen_categories_of_a_file_are_fifteen_sources(
    suffix: str, imports: Import, store: Store, tmp_path: Path
) -> None:
    rows: list[dict[str, object]] = [
        {"content": f"{number} {name}: {TEXT}", "category": name}
        for number in range(2)
        for name in CATEGORIES
    ]
    path = tmp_path / f"month{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        _write(path, rows)
    found = imports(path)
    assert not found.failures
    assert [seal.partition.source for seal in found.seals] == sorted(
        f"ue:{name}" for name in CATEGORIES
    )
    for seal in list_sealed(store):
        [batch] = read_documents(store, seal)
        name = seal.partition.source.removeprefix("ue:")
        assert seal.partition.month == MAY
        assert set(batch["source"].to_pylist()) == {seal.partition.source}
        assert [text.split(":")[0] for text in batch["text"].to_pylist()] == [
            f"0 {name}", f"1 {name}",
        ]  # fmt: skip
        assert batch["category"].to_pylist() == [name, name]
        assert seal.manifest["source_column"] == "category"
    assert imports(path).seals == found.seals  # a second import changes nothing


def test_each_source_has_the_months_of_its_rows(imports: Import, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"content": f"{day} {TEXT}", "category": name, "date": day}
        for name, day in (("news", "2024-05-02"), ("code", "2024-06-03"), ("news", "2024-06-04"))
    ]
    found = imports(_write(tmp_path / "a.jsonl", rows), None)
    assert [str(seal.partition) for seal in found.seals] == [
        "ue:code 2024-06", "ue:news 2024-05", "ue:news 2024-06",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", r"is ''; expected printable"), ("  ", "expected printable"),
        ("a\nb", r"is 'a\\nb'; expected printable"), ("a\x00", "expected printable"),
        ("\ud800", "expected printable"), ("a:b", "no colon"), (None, "is null; expected a text"),
        (3, "is a number; expected a text"), (["a"], "is a list"),
        ("x" * 65, "too long; expected at most 64 characters"),
        ("\u6d77" * 64, "too long"),  # 9 characters each in the name of a folder
        ("week", "the name of a period"), ("half-month", "the name of a period"),
    ],
)  # fmt: skip
def test_unusable_values_are_counted_with_row_and_expectation(
    value: object, says: str, imports: Import, store: Store, tmp_path: Path
) -> None:
    rows: list[dict[str, object]] = [
        {"content": f"0 {TEXT}", "category": value},
        {"content": f"1 {TEXT}", "category": " good "},
    ]
    [seal] = imports(_write(tmp_path / "a.jsonl", rows)).seals
    assert (seal.partition.source, seal.num_documents) == ("ue:good", 1)
    assert seal.manifest["dropped"] == {"no_source": 1}
    assert (seal.manifest["requested"], seal.manifest["kept"]) == (2, 1)
    raw = zstandard.decompress(store.read_bytes(f"{seal.folder}/dropped.jsonl.zst"))
    drop = json.loads(raw)
    assert drop["native_id"] == "a.jsonl:1"
    refused = source_of(Row("a.jsonl:1", {"category": value}), "ue", "category")
    assert isinstance(refused, Drop)
    assert drop["detail"] == refused.detail
    assert refused.detail.startswith("a.jsonl:1: column `category` ")
    with pytest.raises(EmptyPartition, match=says):
        imports(_write(tmp_path / "b.jsonl", rows[:1]))


def test_a_value_is_the_same_in_both_forms_of_its_accents() -> None:
    names = {
        source_of(Row("a:1", {"category": value}), "ue", "category")
        for value in ("caf\u00e9", "cafe\u0301")
    }
    assert names == {"ue:caf\u00e9"}


def test_a_column_that_no_row_has_is_refused(
    imports: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, object]] = [{"content": f"{number} {TEXT}"} for number in range(3)]
    with pytest.raises(UsageError, match="no row has a column `category`"):
        imports(_write(tmp_path / "a.jsonl", rows))
    monkeypatch.setattr("crawlers.imports.sets.MAX_PARTITIONS", 2)
    rows = [{**row, "category": f"name {number}"} for number, row in enumerate(rows)]
    with pytest.raises(UsageError, match=r"of ue:name 2 2024-05.*`category` that of sources"):
        imports(_write(tmp_path / "b.jsonl", rows))


def test_a_source_of_pictures_stays_one(
    imports: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A category whose name is that of a source with other content stops no other category."""

    def refuse(partition: object, content: str, store: Store) -> None:
        if str(partition).startswith("ue:pictures"):
            raise UsageError("is sealed as image")

    monkeypatch.setattr("crawlers.imports.sets.require_target", refuse)
    rows: list[dict[str, object]] = [
        {"content": f"{name} {TEXT}", "category": name} for name in ("news", "pictures")
    ]
    found = imports(_write(tmp_path / "a.jsonl", rows))
    assert [str(seal.partition) for seal in found.seals] == ["ue:news 2024-05"]
    assert found.failures == ("ue:pictures 2024-05: is sealed as image",)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "needs a name"), ("  ", "needs a name"), (" x", "blanks around"),
        ("x\u00a0", "blanks around"), ("a\tb", "not seen"), ("a\nb", "not seen"),
        ("a\u200bb", "not seen"), ("a\u202eb", "not seen"), ("x\0y", "not seen"),
        ("cafe\u0301", "composed"), ("x:", "nothing before or after"), (":", "nothing before"),
        ("x" * 300, "too long"), ("\u6587" * 30, "too long"), ("SET", "letter case"),
        ("..", "cannot name a folder"),
    ],
)  # fmt: skip
def test_a_name_that_no_source_can_have_is_refused(
    name: str, reason: str, imports: Import, store: Store, tmp_path: Path
) -> None:
    path = _write(tmp_path / "a.jsonl", [{"content": TEXT, "category": "a"}])
    store.write_bytes("corpus/source=set/month=2024-05/kept", b"")
    with pytest.raises((UsageError, StorageError), match=reason):
        imports(path, source=name)
    assert store.list("corpus/source=*") == ["corpus/source=set"]


def test_odd_names_that_sources_can_have(imports: Import, store: Store, tmp_path: Path) -> None:
    path = _write(tmp_path / "a.jsonl", [{"content": TEXT, "category": "a"}])
    names = (
        "../x",
        "a/b",
        "a%2Fb",
        "a*b",
        "-x",
        "x y",
        "CON",
        "caf\u00e9",
        "\u0645\u06cc\u200c\u062e",
    )
    for name in names:
        imports(path, source=name)
    assert sorted(seal.partition.source for seal in list_sealed(store)) == sorted(
        f"{name}:a" for name in names
    )
    assert {path.parent for path in Path(store.root).glob("corpus/*")} == {
        Path(store.root) / "corpus"
    }
