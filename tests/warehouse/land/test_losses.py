import dataclasses
import datetime as dt
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from core.cells.losses import Cell
from core.corpus.partition import Partition, tables_of
from core.corpus.sealing import seal_partition
from core.errors import CellConflict, DamagedFile, MalformedInput, SchemaMismatch, StorageError
from core.month import Month
from core.schemas.tables import DOCUMENTS, LOSSES
from core.settings import Settings
from core.storage.store import Store
from tests.warehouse.cells import CELL, JANUARY, land_scored
from warehouse.database.writer import connected, transaction
from warehouse.land import losses as losses_module
from warehouse.land.losses import Landed, open_warehouse

pytestmark = pytest.mark.usefixtures("kept_open")


def documents(clusters: dict[str, str | None]) -> pa.Table:
    facts = {"source": "news", "month": dt.date(2024, 1, 1), "date_kind": "created"}
    facts |= {"licence": "CC0-1.0", "num_chars": 4, "num_bytes": 4, "text": "text"}
    rows = [
        facts
        | {**dict.fromkeys(("document_id", "native_id", "sha256_text"), name), "cluster_id": c}
        for name, c in clusters.items()
    ]
    return pa.Table.from_pylist(rows, schema=DOCUMENTS)


def test_the_same_rows_land_once(land: Any, ask: Any) -> None:
    rows = [{"document_id": "d0"}, {"document_id": "d1", "month": None}]
    assert land(*rows) == Landed(num_cells=2, num_rows=2)
    assert land(*reversed(rows)) == Landed(num_cells=0, num_rows=0)
    assert ask("select count(*) as n from chunk_losses") == [{"n": 2}]


def test_other_losses_are_added_or_conflict_unless_replaced(land: Any, ask: Any) -> None:
    land({"document_id": "d0"})
    assert land({"document_id": "d0"}, {"document_id": "d1"}) == Landed(1, 1)
    with pytest.raises(CellConflict, match=r"document_id=d1.*--replace"):
        land({"document_id": "d2"}, {"document_id": "d1", "nll_nats": 11.0})
    assert ask("select num_documents as n, nll_nats from monthly_loss") == [
        {"n": 2, "nll_nats": 20.0}
    ]
    land({"document_id": "d1", "nll_nats": 11.0}, replace=True)
    assert ask("select sum(nll_nats) as s from chunk_losses") == [{"s": 21.0}]
    with pytest.raises(CellConflict, match="revision=r2, landed_revision=r1"):
        land({"document_id": "d2", "revision": "r2"})
    land({"document_id": "d2", "revision": "r2"}, replace=True)
    assert ask("select document_id, revision from chunk_losses") == [
        {"document_id": "d2", "revision": "r2"}
    ]


def test_a_chunk_that_comes_twice_is_named(land: Any) -> None:
    rows = [{"chunk_index": i} for i in range(600)]
    for index in (0, 1, 61, 62, 500):
        named = f"document_id=d0, chunk_index={index}, num_rows=2"
        with pytest.raises(SchemaMismatch, match=named):
            land(*rows, {"chunk_index": index})
    with pytest.raises(SchemaMismatch, match="two revisions of its model: .*revision='r1 and r2'"):
        land({"document_id": "d0"}, {"document_id": "d1", "revision": "r2"})


def test_a_bad_file_changes_nothing(
    settings: Settings, losses: Any, ask: Any, tmp_path: Path
) -> None:
    bad = losses({"document_id": "d0"}, {"document_id": "d1", "nll_nats": -1.0})
    files = {
        "negative": (bad, SchemaMismatch, r"negative.parquet: row 1: nll_nats must be >= 0"),
        "column": (bad.drop_columns(["num_bytes"]), SchemaMismatch, "'num_bytes' is missing"),
        "empty": (LOSSES.empty_table(), SchemaMismatch, "has no rows"),
        "text": (None, MalformedInput, "cannot be read as Parquet"),
        "nowhere": (None, MalformedInput, "nowhere"),
        "schema": (None, MalformedInput, "cannot be read as Parquet"),
    }
    (tmp_path / "text.parquet").write_text("not Parquet")
    pq.write_table(losses({"document_id": "d0"}), tmp_path / "schema.parquet", store_schema=False)
    damaged = (tmp_path / "schema.parquet").read_bytes().replace(b"chunk_index", b"\xffhunk_index")
    (tmp_path / "schema.parquet").write_bytes(damaged)
    good = tmp_path / "[good]*.parquet"
    pq.write_table(losses({"document_id": "d5"}), good)
    with open_warehouse(settings) as warehouse:
        for name, (table, error, says) in files.items():
            path = tmp_path / f"{name}.parquet"
            if table is not None:
                pq.write_table(table, path)
            with pytest.raises(error, match=says):
                warehouse.land_file(path)
        warehouse.land_file(good)
    assert ask("select document_id from chunk_losses") == [{"document_id": "d5"}]


def test_a_large_file_lands_in_batches(settings: Settings, ask: Any, tmp_path: Path) -> None:
    n = 300_000
    number = pa.array(range(n), pa.int64())
    names = {"model": "m", "revision": "r", "source": "s", "protocol": "default", "nll_nats": 2.0}
    table = pa.table(
        {
            **{name: pa.repeat(value, n) for name, value in names.items()},
            "month": pa.repeat(pa.scalar(dt.date(2024, 1, 1)), n),
            "document_id": pc.cast(pc.divide(number, 1000), pa.string()),
            "chunk_index": pa.array(np.arange(n, dtype=np.int32) % 1000),
            **dict.fromkeys(("num_tokens", "num_chars", "num_bytes"), pa.repeat(pa.scalar(3), n)),
        }
    )
    pq.write_table(table, tmp_path / "large.parquet")
    with open_warehouse(settings) as warehouse:
        assert warehouse.land_file(tmp_path / "large.parquet") == Landed(1, n)
    [row] = ask("select num_documents, num_chunks, nll_nats, num_bytes from internal.landed_cells")
    assert row == {"num_documents": 300, "num_chunks": n, "nll_nats": 2.0 * n, "num_bytes": 3 * n}


def test_own_cells_supersede_and_land_once(
    settings: Settings, store: Store, losses: Any, ask: Any
) -> None:
    newer = Cell("org/model", "r2", JANUARY, "digest-2", "default", "scoring-1")
    with open_warehouse(settings) as warehouse:
        table = losses({"document_id": "d0"}, {"document_id": "d1"})
        assert land_scored(warehouse, store, CELL, table) == Landed(1, 2)
        assert land_scored(warehouse, store, CELL, table) == Landed(0, 0)
        rows = [{"document_id": name, "revision": "r2"} for name in ("d8", "d9")]
        assert land_scored(warehouse, store, newer, losses(*rows)).num_rows == 2
        other = dataclasses.replace(newer, scoring="other")
        with pytest.raises(SchemaMismatch, match="another cell: .*revision=r1"):
            land_scored(warehouse, store, other, table)
    found = ask("select document_id from chunk_losses order by all")
    assert found == [{"document_id": "d8"}, {"document_id": "d9"}]
    [row] = ask("select revision, partition_digest, num_documents from internal.landed_cells")
    assert row == {"revision": "r2", "partition_digest": "digest-2", "num_documents": 2}
    assert ask("select count(*) as n from internal.cell_replicates") == [{"n": 200}]


def test_own_cells_are_read_from_the_data_root(
    settings: Settings, store: Store, losses: Any
) -> None:
    with open_warehouse(settings) as warehouse:
        [fault] = warehouse.land_cells([CELL]).faults
        assert isinstance(fault, StorageError)
        store.write_bytes(CELL.path, b"torn")
        [fault] = warehouse.land_cells([CELL]).faults
        assert isinstance(fault, DamagedFile)
        assert CELL.path in str(fault)
        assert "score again" in str(fault)
        assert land_scored(warehouse, store, CELL, losses({})) == Landed(1, 1)


def test_documents_land_without_text_and_carry_clusters_into_replicates(
    settings: Settings, store: Store, losses: Any, ask: Any
) -> None:
    apart = seal_partition(store, JANUARY, [documents({"d0": None, "d1": None})])
    rows = losses({"document_id": "d0", "nll_nats": 1.0}, {"document_id": "d1", "nll_nats": 3.0})
    count = "select count(*) as n from internal.cell_replicates"
    with open_warehouse(settings) as warehouse:
        land_scored(warehouse, store, CELL, rows)
        assert warehouse.land_documents(apart)
        assert not warehouse.land_documents(apart)
    assert ask(count) == [{"n": 200}]
    together = seal_partition(
        store, JANUARY, [documents({"d0": "page", "d1": "page", "d2": None})], replace=True
    )
    with open_warehouse(settings) as warehouse:
        assert warehouse.land_documents(together)
    assert ask(count) == [{"n": 0}]  # one cluster: there is nothing to resample
    [row] = ask("select count(*) as n, count(cluster_id) as c from documents")
    assert row == {"n": 3, "c": 2}
    [row] = ask("select num_documents, num_documents_of_partitions as of_partitions from coverage")
    assert row == {"num_documents": 2, "of_partitions": 3}
    names = {row["column_name"] for row in ask("describe documents")}
    assert "text" not in names
    with connected(settings) as connection:  # as landed before the column existed
        connection.execute("update documents set native_id = null")
    with open_warehouse(settings) as warehouse:
        assert warehouse.land_documents(together)
        assert not warehouse.land_documents(together)
    assert ask("select count(native_id) as n from documents") == [{"n": 3}]


def test_an_import_replaces_nothing(settings: Settings, losses: Any, tmp_path: Path) -> None:
    path = tmp_path / "changed.parquet"
    pq.write_table(losses({"nll_nats": 11.0}), path)
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses({}), "rows")
        with pytest.raises(CellConflict, match="--replace"):
            warehouse.land_file(path)
        with pytest.raises(CellConflict, match="--replace"):
            warehouse.land_losses(pq.read_table(path, partitioning=None), "rows")
        assert warehouse.land_cells([]) == Landed(0, 0)


def test_the_commit_of_a_group_names_its_size(
    settings: Settings, store: Store, losses: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = (dataclasses.replace(CELL, protocol=name) for name in ("a", "b", "c"))
    for cell in (first, *others):
        with store.writing(cell.path) as staged:
            pq.write_table(losses({"protocol": cell.protocol}), staged.path)
    messages = []

    def named(connection: Any, what: str) -> Any:
        messages.append(what)
        return transaction(connection, what)

    monkeypatch.setattr(losses_module, "transaction", named)
    with open_warehouse(settings) as warehouse:
        warehouse.land_cells([first])
        warehouse.land_cells(others)
    assert messages == [f"land losses of {first}", f"land losses of {others[0]} and 1 more"]


def test_a_partition_without_documents_lands(settings: Settings, store: Store, ask: Any) -> None:
    with open_warehouse(settings) as warehouse:
        assert warehouse.land_documents(seal_partition(store, JANUARY, []))
    assert ask("select num_documents as n from internal.landed_partitions") == [{"n": 0}]


def test_replicates_do_not_depend_on_the_order_of_landing(
    tmp_path: Path, losses: Any, dump: Any
) -> None:
    clusters = {f"d{i}": f"page{i % 7}" for i in range(20)}
    rows = losses(*({"document_id": name, "nll_nats": 0.1 * len(name)} for name in clusters))
    found = []
    for order in (0, 1):
        settings = Settings(home=str(tmp_path / str(order)))
        seal = seal_partition(Store(settings.home), JANUARY, [documents(dict(clusters))])
        with open_warehouse(settings) as warehouse:
            if order:
                warehouse.land_documents(seal)
            warehouse.land_losses(rows, "rows")
            warehouse.land_documents(seal)
        found.append(dump(settings)["cell_replicates"])
    assert found[0] == found[1]
    assert len(found[0]) == 200


@pytest.mark.long
def test_weights_are_poisson_and_independent(settings: Settings, losses: Any, dump: Any) -> None:
    """Weights show as num_bytes where every document is one byte, and all else of its cell none."""
    n = 1000
    rows = [{"document_id": f"d{i}", "source": f"s{i}", "num_bytes": 1} for i in range(n)]
    empty = {"document_id": "other", "num_bytes": 0, "nll_nats": 0.0}
    rows += [{**empty, "source": f"s{i}"} for i in range(n)]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*rows), "rows")
    cells = dump(settings)["cell_replicates"]
    weights = np.zeros((200, n))
    for _model, source, _month, _protocol, replicate, _nats, num_bytes in cells:
        weights[replicate - 1, int(source[1:])] = num_bytes
    assert weights.mean() == pytest.approx(1, abs=0.01)
    assert weights.var() == pytest.approx(1, abs=0.01)
    shares = [float((weights == k).mean()) for k in range(4)]
    assert shares == pytest.approx([math.exp(-1) / math.factorial(k) for k in range(4)], abs=0.005)
    # Over n clusters a correlation of chance stays below 5 / sqrt(n) in all 19,900 pairs.
    between = np.corrcoef(weights) - np.eye(200)
    assert float(np.abs(between).max()) < 5 / math.sqrt(n)


def test_a_file_that_cannot_be_read_costs_its_cell_alone(
    settings: Settings, store: Store, losses: Any, ask: Any
) -> None:
    """A folder in place of a file gives an error of the disk, not of the content."""
    cells = [
        dataclasses.replace(CELL, partition=Partition("news", Month(f"2024-{month:02}")))
        for month in range(1, 10)
    ]
    for cell in cells:
        month = cell.partition.month
        assert month
        with store.writing(cell.path) as staged:
            pq.write_table(losses({"month": month.first_day}), staged.path)
    unreadable = [cells[index] for index in (0, 2, 3, 6, 7, 8)]
    for cell in unreadable:
        Path(store.url(cell.path)).unlink()
        Path(store.url(cell.path)).mkdir()
    with open_warehouse(settings) as warehouse:
        landed = warehouse.land_cells(cells[:6])
        assert landed.num_cells == 3
        assert [type(fault) for fault in landed.faults] == [StorageError] * 3
        again = warehouse.land_cells(cells)
        assert again.num_cells == 0
        assert [type(fault) for fault in again.faults] == [StorageError] * 6
        for cell, fault in zip(unreadable, again.faults, strict=True):
            assert cell.path in str(fault)
    found = ask("select strftime(month, '%m') as month from internal.landed_cells order by all")
    assert [row["month"] for row in found] == ["02", "05", "06"]


def test_names_are_data(land: Any, ask: Any, settings: Settings) -> None:
    names = ("'; drop table chunk_losses; --", '"; delete from models; --', "a/../b", "$1 ? %s")
    for name in names:
        land({"model": name, "source": name, "protocol": name, "document_id": name})
        with open_warehouse(settings) as warehouse:
            warehouse.upsert_models([{"name": name, "cutoff": Month("2023-12")}])
            warehouse.upsert_sources([{"name": name}])
            warehouse.upsert_protocols([{"name": name}])
    rows = ask(
        "select model, source, protocol from train_test_gap "
        "where scope = 'source' and list_contains(?, model)",
        list(names),
    )
    assert sorted(row["model"] for row in rows) == sorted(names)
    assert all(row["model"] == row["source"] == row["protocol"] for row in rows)


def test_dimensions_are_inserted_or_replaced(settings: Settings, ask: Any) -> None:
    with open_warehouse(settings) as warehouse:
        warehouse.upsert_models([{"name": "a", "cutoff": Month("2024-02"), "unknown": 1}])
        warehouse.upsert_models([{"name": "a", "parameters": 7}, {"model": "b", "is_chat": True}])
        warehouse.upsert_models([])
        with pytest.raises(SchemaMismatch, match="a model of its own"):
            warehouse.upsert_models([{"name": "a"}, {"name": "a"}])
        with pytest.raises(SchemaMismatch, match="models"):
            warehouse.upsert_models([{"name": "a", "parameters": "many"}])
    assert ask("select model, cutoff, parameters, is_chat from models order by model") == [
        {"model": "a", "cutoff": None, "parameters": 7, "is_chat": None},
        {"model": "b", "cutoff": None, "parameters": None, "is_chat": True},
    ]


def test_a_model_that_is_described_again_leaves_the_file_as_it_is(settings: Settings) -> None:
    """Else the snapshot would count as outdated after each run."""
    described = [{"name": "a", "cutoff": Month("2024-02")}]
    contents = []
    for rows in (described, described, [{"name": "a"}]):
        with open_warehouse(settings) as warehouse:
            warehouse.upsert_models(rows)
        files = sorted(settings.scratch.glob("writer.duckdb*"))  # with its journal, if any
        contents.append([path.read_bytes() for path in files])
    assert contents[0] == contents[1]
    assert contents[1] != contents[2]


def test_images_land_without_characters(settings: Settings, store: Store, ask: Any) -> None:
    row = {
        "native_id": "photograph", "date_kind": "given", "licence": "CC0-1.0",
        "media_kind": "image", "codec": "grey8", "width": 4, "height": 2, "media": b"pictures",
    }  # fmt: skip
    seal = seal_partition(store, JANUARY, tables_of([row], JANUARY))
    with open_warehouse(settings) as warehouse:
        assert warehouse.land_documents(seal)
        assert not warehouse.land_documents(seal)
    [document] = ask("select cluster_id, num_chars, num_bytes from documents")
    assert document == {"cluster_id": "photograph", "num_chars": 0, "num_bytes": 8}


def test_own_losses_cannot_pass_for_published_rates(land: Any, dump: Any, settings: Any) -> None:
    with pytest.raises(SchemaMismatch, match=r"'published'.*land rates.*org/model"):
        land({}, {"document_id": "d1", "protocol": "published"})
    assert dump(settings)["chunk_losses"] == []


def test_the_sums_and_errors_of_a_cell(land: Any, settings: Any) -> None:
    rng = np.random.default_rng(2)
    num_bytes = rng.integers(50, 5000, 25)
    nats = num_bytes * rng.normal(0.7, 0.1, 25)
    rows = [
        {"document_id": f"d{i}", "chunk_index": i % 3, "nll_nats": nats[i], "num_bytes": n}
        for i, n in enumerate(num_bytes.tolist())
    ]
    land(*rows, {"document_id": "lost", "nll_nats": None, "reason": "too_long"})
    with connected(settings) as connection:
        [cell] = connection.table("internal.landed_cells").to_arrow_table().to_pylist()
    ratio = nats.sum() / np.log(2) / num_bytes.sum()
    share = num_bytes / num_bytes.sum()
    influence = (nats / np.log(2) - ratio * num_bytes) / (1 - share) / num_bytes.sum()
    squares = (influence**2).sum()
    assert cell["standard_error"] == pytest.approx(np.sqrt(squares * 24 / 25), rel=1e-9)
    degrees = squares**2 / (influence**4).sum()
    assert cell["degrees_of_freedom"] == pytest.approx(degrees, rel=1e-9)
    assert cell["nll_nats"] == pytest.approx(nats.sum(), rel=1e-12)
    assert (cell["num_clusters"], cell["num_unmeasured"], cell["num_not_finite"]) == (25, 1, 0)
    assert cell["num_bytes"] == num_bytes.sum()


@pytest.mark.parametrize("is_dictionary", [True, False])
@pytest.mark.parametrize("name", ["model", "document_id"])
def test_names_of_a_megabyte_are_refused_before_they_fill_memory(
    settings: Settings, losses: Any, tmp_path: Path, name: str, is_dictionary: bool
) -> None:
    """Decoded, these names would take 20 GB."""
    num_rows = 20_000 if is_dictionary else 20
    row = losses({}).combine_chunks()
    columns = {key: pa.repeat(row[key][0], num_rows) for key in row.column_names}
    columns["chunk_index"] = pa.array(range(num_rows), pa.int32())
    indices = pa.repeat(pa.scalar(0, pa.int32()), num_rows)
    columns[name] = pa.DictionaryArray.from_arrays(indices, ["x" * 2**20])
    if not is_dictionary:
        columns[name] = columns[name].cast(pa.string())
    path = tmp_path / "losses.parquet"
    pq.write_table(pa.table(columns), path, use_dictionary=is_dictionary, compression="zstd")
    with open_warehouse(settings) as warehouse, pytest.raises(SchemaMismatch, match=rf"{name} has"):
        warehouse.land_file(path)


IMPOSSIBLE = [
    ({"month": dt.date(9000, 1, 1)}, "a month must not be to come"),
    ({"num_bytes": 0, "num_chars": 0, "num_tokens": 1}, "a text without bytes has no loss"),
    ({"num_tokens": 121, "num_bytes": 26}, "at most 4 tokens a byte"),
    ({"num_tokens": 0}, "a text without tokens has no loss"),
    ({"num_bytes": 26, "num_chars": 27}, "a character has at least one byte"),
    ({"month": dt.date(1, 1, 1)}, "a month must not be before 1700"),
    ({"model": "m\0"}, "no control characters and no outer blanks.*model='m..00'"),
    ({"model": " m"}, "no outer blanks"),
    ({"source": "s\u00a0"}, "no outer blanks"),
    ({"revision": "r\n1"}, "no control characters"),
    ({"protocol": "p\u2028q"}, "no control characters"),
    ({"document_id": "d\t"}, "a document_id has no control characters"),
    ({"model": "m\u200b"}, r"signs that are not seen: model='m\\u200b'"),
    ({"model": "m\u202exe"}, "signs that are not seen"),
    ({"source": "\ufeffs"}, "signs that are not seen"),
    ({"protocol": "p\u00adq"}, "signs that are not seen"),
    ({"document_id": "d\U000e0041"}, "signs that are not seen"),
    ({"revision": "r\u200d"}, "signs that are not seen"),
    ({"model": "cafe\u0301"}, r"composed characters \(NFC\): model=.cafe"),
    # The rest of Unicode's Default_Ignorable_Code_Point, and what looks like a blank.
    ({"model": "a\u034fb"}, "signs that are not seen"),
    ({"model": "a\ufe0e"}, "signs that are not seen"),
    ({"source": "a\U000e0100"}, "signs that are not seen"),
    ({"model": "a\u115fb"}, "signs that are not seen"),
    ({"model": "a\u200db"}, "signs that are not seen"),
    ({"protocol": "a\u180bb"}, "signs that are not seen"),
    ({"revision": "a\u2800"}, "signs that are not seen"),
    ({"document_id": "a\u3164b"}, "signs that are not seen"),
    ({"document_id": "a\uffa0b"}, "signs that are not seen"),
    ({"document_id": "a\u17b4b"}, "signs that are not seen"),
    ({"document_id": "a\U0001d173b"}, "signs that are not seen"),
    ({"document_id": "a\U0001bca0b"}, "signs that are not seen"),
    ({"document_id": "a\U000e0fffb"}, "signs that are not seen"),
    ({"document_id": "a\uffffb"}, "code points that are no characters"),
    ({"document_id": "a\U0003fffe"}, "code points that are no characters"),
    ({"model": "\u0301a"}, "no mark before the first letter"),
    ({"num_tokens": 0, "nll_nats": 0.0}, "a text with bytes has a token"),
    ({"nll_nats": None, "reason": " "}, "reason must say why"),
    ({"nll_nats": None, "reason": "\x1b[31mred"}, "reason must have no control characters"),
    ({"nll_nats": None, "reason": "x" * 5000}, "reason (must have|has a value of) .*4,?096"),
    ({"source": "News"}, "the source 'News' is new, and differs from 'news'"),
    ({"protocol": "DEFAULT"}, "the protocol 'DEFAULT' is new, and differs from 'default'"),
]


def test_rows_that_no_corpus_can_have_are_refused(
    land: Any, ask: Any, subtests: pytest.Subtests
) -> None:
    for change, rule in IMPOSSIBLE:
        with subtests.test(str(change)), pytest.raises(SchemaMismatch, match=rule):
            land({"document_id": "d0"}, {"document_id": "d1", **change})
    assert ask("select count(*) as n from chunk_losses") == [{"n": 0}]


def test_rows_at_the_limits_land(land: Any) -> None:
    today = dt.datetime.now(dt.UTC).date().replace(day=1)
    assert land(
        {"document_id": "inner blank, \u0645\u06cc\u200c\u062e", "month": today},
        {"document_id": "d1", "num_bytes": 26, "num_tokens": 120},
        {"document_id": "d5", "month": dt.date(1700, 1, 1)},
        {"document_id": "d2", "num_bytes": 0, "num_tokens": 1, "nll_nats": 0.0, "num_chars": 0},
        # Selectors and joiners are spelling in the titles that ids may be.
        {"document_id": "\u2764\ufe0f \u0d28\u0d4d\u200d \u182d\u180b"},
        # Who counts what readers see as one character has up to 40 bytes in an emoji.
        {"document_id": "emoji", "num_bytes": 41, "num_chars": 2, "num_tokens": 10},
        # Images and recordings have no characters.
        {"document_id": "image", "num_bytes": 40, "num_chars": 0, "num_tokens": 40},
        # A chunk that ends within a character has no byte of its own.
        {"document_id": "d3", "chunk_index": 0},
        {"document_id": "d3", "chunk_index": 1, "num_bytes": 0, "num_chars": 0, "num_tokens": 1},
    ) == Landed(3, 9)


@pytest.mark.parametrize("name", ["Tiny  Model", "TINY MODEL", "Tiny model"])
def test_a_name_that_looks_like_a_landed_model_is_refused(name: str, land: Any, ask: Any) -> None:
    land({"document_id": "d0", "model": "tiny model"})
    with pytest.raises(SchemaMismatch, match=r"differs from 'tiny model' in letter case or blanks"):
        land({"document_id": "d1", "model": name})
    assert ask("select count(*) as n from chunk_losses") == [{"n": 1}]
    land({"document_id": "d1", "model": "tiny model"}, {"document_id": "d0", "model": "tiny-model"})


def test_models_that_landed_under_two_such_names_keep_both(land: Any, settings: Settings) -> None:
    """A former version landed both."""
    with pytest.raises(SchemaMismatch, match="the model 'One' is new, and differs from 'one'"):
        land({"document_id": "d0", "model": "one"}, {"document_id": "d0", "model": "One"})
    land({"document_id": "d0", "model": "one"}, {"document_id": "d0", "model": "two"})
    with connected(settings) as connection:
        for table in ("chunk_losses", "internal.landed_cells"):
            connection.execute(f"update {table} set model = 'One' where model = 'two'")
    assert land({"document_id": "d1", "model": "One"}) == Landed(1, 1)
