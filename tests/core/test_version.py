import json
from pathlib import Path

import pytest

from core.cells.record import CellRecord
from core.corpus.partition import Partition, read_manifest
from core.errors import StorageError
from core.month import Month
from core.storage.records import read_record
from core.storage.store import Store
from core.version import explain_newer


@pytest.fixture(autouse=True)
def is_version_0_1_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.version.own_version", lambda: "0.1.0")


@pytest.mark.parametrize(
    ("record", "is_newer"),
    [
        ({"code_version": "0.1.1"}, True),
        ({"code_version": "0.10.0"}, True),
        ({"versions": {"tidemark": "1.0", "torch": "2.13.0"}}, True),
        ({"code_version": "0.1.0"}, False),
        ({"code_version": "0.0.9"}, False),
        ({"code_version": "not installed"}, False),
        ({"code_version": 7}, False),
        ({"versions": None}, False),
        ([], False),
    ],
)
def test_a_record_of_a_later_version_is_known_by_its_version(
    record: object, is_newer: bool
) -> None:
    assert (explain_newer(json.dumps(record).encode()) is not None) == is_newer
    assert explain_newer(b"{damaged") is None


def test_records_and_manifests_of_a_later_version_are_not_called_damaged(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write_bytes("cell.json", b'{"versions": {"tidemark": "9.8.7"}, "took_ms": 3}')
    path = "corpus/source=news/month=2024-01/manifest.json"
    store.write_bytes(path, b'{"code_version": "9.8.7", "content": "smell"}')
    says = r"was written by tidemark 9\.8\.7, newer than this one \(0\.1\.0\); use that version"
    with pytest.raises(StorageError, match=f"cell.json {says}"):
        read_record(CellRecord, store, "cell.json", "the record of a cell", "mend it")
    with pytest.raises(StorageError, match=f"manifest.json {says}"):
        read_manifest(store, Partition("news", Month("2024-01")), path)
    store.write_bytes("cell.json", b"{}")
    with pytest.raises(StorageError, match="is not the record of a cell: .*; mend it"):
        read_record(CellRecord, store, "cell.json", "the record of a cell", "mend it")
