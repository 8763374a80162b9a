from typing import Any

import pytest

from core.corpus.partition import list_sealed, list_versions
from core.corpus.sealing import Description, accept_held, read_held, seal_partition
from core.errors import PartitionHeld, PartitionSealed
from core.storage.store import Store
from tests.core.corpus.test_partition import small_parts  # noqa: F401
from tests.core.corpus.texts import MARCH, tables, texts_of


@pytest.mark.usefixtures("small_parts")
def test_an_object_store_holds_partitions_too(s3_options: dict[str, Any]) -> None:
    store = Store("s3://bucket/corpus-test", **s3_options)
    texts = [f"text {i}" for i in range(5)]
    first = seal_partition(store, MARCH, [*tables(*texts), Description(files={"notes.txt": b"1"})])
    assert texts_of(store, first) == texts
    assert seal_partition(store, MARCH, tables(*texts)) == first
    with pytest.raises(PartitionSealed):
        seal_partition(store, MARCH, tables("other"))
    second = seal_partition(store, MARCH, tables("other"), replace=True)
    assert list_sealed(store) == [second]
    assert texts_of(store, second) == ["other"]
    assert store.list(f"{second.folder}/*") == sorted(
        [*second.parts, f"{second.folder}/manifest.json"]
    )
    assert list_versions(store, MARCH) == [first, second]
    assert texts_of(store, first) == texts
    with pytest.raises(PartitionHeld):
        seal_partition(
            store, MARCH, [*tables("b"), Description(held_because=["odd"])], replace=True
        )
    third = accept_held(store, MARCH, "it is")
    assert (third.version, texts_of(store, third)) == (3, ["b"])
    assert read_held(store, MARCH) is None
