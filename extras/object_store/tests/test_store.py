"""A store on an object store does what one on a disk does."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from core.errors import StorageError
from core.storage.store import Store
from extras.object_store.stores import RemoteStore
from instruments.running.retries import PAUSES, pauses_of
from tests.core.storage.test_store import (
    test_a_block_that_fails_writes_nothing,  # noqa: F401
    test_a_stamp_stays_with_the_content_and_changes_with_it,  # noqa: F401
    test_deleting_takes_a_name_literally,  # noqa: F401
    test_deleting_takes_folders_and_forgives_absence,  # noqa: F401
    test_listing_matches_and_sorts,  # noqa: F401
    test_no_path_leaves_the_root,  # noqa: F401
    test_what_is_written_is_read,  # noqa: F401
)
from tests.loopback import free_port


@pytest.fixture
def store(s3_options: dict[str, Any], tmp_path: Path) -> Store:
    return Store(f"s3://bucket/{tmp_path.name}", **s3_options)


@pytest.mark.smoke
def test_an_address_is_opened_by_the_extra() -> None:
    store = Store("memory://smoke/")
    assert isinstance(store, RemoteStore)
    assert store.root == "memory://smoke"
    store.write_bytes("a/b", b"1")
    assert store.list("*/b") == ["a/b"]
    assert store.create_bytes("a/b", b"2") is False
    with store.writing("a/b") as staged:
        staged.path.write_bytes(b"3")
    store.move("a/b", "a/c")
    assert store.read_bytes("a/c") == b"3"
    assert pickle.loads(pickle.dumps(store)).list("a/*") == ["a/c"]


def test_another_worker_s_files_are_seen_at_once(
    tmp_path: Path, s3_options: dict[str, Any]
) -> None:
    url = f"s3://bucket/{tmp_path.name}"
    ours = Store(url, **s3_options)
    theirs = Store(url, skip_instance_cache=True, **s3_options)
    theirs.write_bytes("folder/a", b"1")
    assert ours.list("folder/*") == ["folder/a"]
    theirs.write_bytes("folder/b", b"2")
    assert ours.exists("folder/b")
    assert ours.list("folder/*") == ["folder/a", "folder/b"]
    theirs.delete("folder/a")
    assert not ours.exists("folder/a")


def test_an_unknown_kind_of_address_is_refused() -> None:
    with pytest.raises(StorageError, match="foo://bar cannot be a data root"):
        Store("foo://bar")


@pytest.mark.long
def test_an_object_store_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extras.object_store.client.PATIENCE_S", 0.5)
    endpoint = f"http://127.0.0.1:{free_port()}"
    config = {"retries": {"total_max_attempts": 1}, "connect_timeout": 1}
    store = Store("s3://bucket/x", key="k", secret="s", endpoint_url=endpoint, config_kwargs=config)
    for action in (store.exists, store.list, store.read_bytes, store.delete):
        with pytest.raises(StorageError, match="s3://bucket/x/a"):
            action("a")
    with pytest.raises(StorageError, match="cannot write s3://bucket/x/a"):
        store.write_bytes("a", b"1")


def test_an_object_store_that_is_away_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extras.object_store.client.PATIENCE_S", 1.0)
    client = {"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:9"}
    options = {"config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 1}}
    store = Store("s3://bucket/home", **client, **options)
    with pytest.raises(StorageError) as caught:
        store.read_bytes("manifest.json")
    assert pauses_of(caught.value) == PAUSES[StorageError]
