import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import DiskFull, ModelLoadError, StorageError
from core.settings import Settings
from models.catalogue import ModelEntry
from models.scoring.token_scorer import CausalLM
from models.weights.cache import (
    evict,
    fetch,
    fetch_with_base,
    list_cached,
    open_snapshot,
    readable_size,
    release_models,
)
from models.weights.hub import find_cached
from models.weights.prefetch import prefetch, read_ahead
from simulator.server import Fault
from simulator.sites.hub import TOKEN
from tests.models.conftest import adapter_of

NAME = "someone/tiny"


@pytest.fixture
def folder(folder, hub, monkeypatch) -> Path:
    """A folder with more than is needed, which the hub has as NAME; attempts follow at once."""
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    (folder / "README.md").write_text("# Tiny")
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "model.fp16.safetensors").write_bytes(b"another copy")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"another form")
    hub.site.add(NAME, folder)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def kept() -> list[str]:
    return [model.location for model in list_cached() if model.num_bytes]


def test_what_is_needed_is_fetched_once(hub, near, folder):
    commit = hub.site.add(NAME, folder)
    got = fetch(NAME, None, near)
    assert (got.commit, got.folder.name) == (commit, commit)
    needed = [
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip
    assert names(got.folder) == needed
    assert got.num_bytes == got.num_new_bytes == sum((folder / n).stat().st_size for n in needed)
    assert (got.folder / "model.safetensors").read_bytes() == (
        folder / "model.safetensors"
    ).read_bytes()
    assert fetch(NAME, None, near).num_new_bytes == 0
    stored = [path for path in hub.paths if path.startswith("/store/")]
    assert len(stored) == 1
    assert find_cached(NAME, None, False) == find_cached(NAME, commit, False) == got.folder


def test_a_cached_model_is_scored_without_asking_the_hub(hub, near, folder, batch_of):
    commit = fetch(NAME, None, near).commit
    folder.joinpath("config.json").write_text("{}")
    hub.site.add(NAME, folder)  # the hub moves on
    hub.web.requests.clear()
    assert CausalLM.load(NAME, None, near).revision == commit
    assert open_snapshot(NAME, None, near).name == commit
    assert hub.web.requests == []
    assert fetch(NAME, None, near).commit != commit  # asked for by name


def test_a_pinned_revision_is_what_is_fetched(hub, near, folder, llama_folder):
    old = hub.site.add(NAME, Path(llama_folder), revision="v1")
    (folder / "config.json").write_text("{}")
    new = hub.site.add(NAME, folder)
    assert fetch(NAME, "v1", near).commit == old
    assert fetch(NAME, old, near).commit == old
    assert find_cached(NAME, "v1", False) == find_cached(NAME, old, False)
    assert find_cached(NAME, None, False) is None
    assert fetch(NAME, None, near).commit == new
    (model,) = list_cached()
    assert model.commits == tuple(sorted([old, new]))
    with pytest.raises(ModelLoadError, match="no revision 'v2'"):
        fetch(NAME, "v2", near)
    with pytest.raises(ModelLoadError, match="is no revision"):
        fetch(NAME, "../../../etc", near)


def test_an_interrupted_fetch_is_continued(hub, near, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 500)
    size = (folder / "model.safetensors").stat().st_size
    hub.site.cuts += [1000] + [0] * 10  # a thousand bytes, then silence
    with pytest.raises(ModelLoadError, match="the hub did not give it"):
        fetch(NAME, None, near)
    assert find_cached(NAME, None, False) is None
    (part,) = hub.cache.rglob("*.part")
    assert part.stat().st_size == 1000
    assert [model.num_bytes > 1000 for model in list_cached()] == [True]
    hub.site.cuts.clear()
    got = fetch(NAME, None, near)
    assert got.num_new_bytes == size - 1000
    whole = (got.folder / "model.safetensors").read_bytes()
    assert whole == (folder / "model.safetensors").read_bytes()
    assert not list(hub.cache.rglob("*.part"))


def test_a_connection_that_breaks_is_taken_up_again(hub, near, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 500)
    hub.site.cuts += [1000, 5000]
    got = fetch(NAME, None, near)
    whole = (got.folder / "model.safetensors").read_bytes()
    assert whole == (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_what_was_damaged_on_the_way_is_not_kept(hub, near, folder, name):
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)  # of the same size, and not what the hub has listed
    with pytest.raises(ModelLoadError, match=rf"{name} came with another SHA"):
        fetch(NAME, None, near)
    assert not list(hub.cache.rglob("*.part"))
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    assert names(fetch(NAME, None, near).folder)


def test_a_hub_that_fails_is_named(hub, near, folder):
    hub.web.faults.append(Fault("status", "hub", "/api/", times=9, status=503))
    with pytest.raises(ModelLoadError, match="the hub answered 503"):
        fetch(NAME, None, near)


def test_pickles_are_fetched_only_where_allowed_and_needed(hub, near, folder):
    assert "pytorch_model.bin" not in names(fetch(NAME, None, near, is_trusted=True).folder)
    (folder / "model.safetensors").unlink()
    hub.site.add("someone/pickled", folder)
    assert "pytorch_model.bin" in names(
        fetch("someone/pickled", None, near, is_trusted=True).folder
    )
    with pytest.raises(ModelLoadError, match=r"pickles only.*--trust code"):
        fetch("someone/pickled", None, near)


def test_the_budget_refuses_and_names_what_was_not_used_for_longest(hub, near, folder):
    for name in ("a/old", "b/new", "c/next"):
        hub.site.add(name, folder)
    size = fetch("a/old", None, near).num_bytes
    fetch("b/new", None, near)
    for path in (hub.cache / "models--a--old").rglob("*"):
        os.utime(path, (1_000_000, 1_000_000))
    assert [model.location for model in list_cached()] == ["a/old", "b/new"]

    def limited(budget: int) -> Settings:
        return Settings(device="cpu", sites=hub.sites, model_cache_bytes=budget)

    with pytest.raises(DiskFull, match=r"MODEL_CACHE_BYTES.*`tidemark models evict a/old` frees"):
        fetch("c/next", None, limited(3 * size - 1))
    with pytest.raises(DiskFull, match=r"evict a/old b/new`"):
        fetch("c/next", None, limited(size))
    with pytest.raises(DiskFull, match=r"all others would not be enough"):
        fetch("c/next", None, limited(size - 1))
    assert kept() == ["a/old", "b/new"]
    assert open_snapshot("a/old", None, limited(0)).is_dir()  # what is there may be used
    assert fetch("c/next", None, limited(3 * size)).num_new_bytes == size


def test_room_is_made_by_removing_what_was_not_used_for_longest(hub, near, folder):
    """Models in use stay, here or in another process, and so do models of other programs."""
    for name in ("a/foreign", "b/used", "c/old", "d/older", "e/next"):
        hub.site.add(name, folder)
    size = fetch("a/foreign", None, near).num_bytes  # never opened by tidemark
    for name in ("b/used", "c/old", "d/older"):
        open_snapshot(name, None, near)
    release_models()
    for age, name in enumerate(("a--foreign", "b--used", "d--older", "c--old")):
        for path in (hub.cache / f"models--{name}").rglob("*"):
            os.utime(path, (1_000_000 + age, 1_000_000 + age))

    limited = Settings(device="cpu", sites=hub.sites, model_cache_bytes=4 * size)
    path = hub.cache / ".locks" / "models--b--used" / "use.db"
    script = f"import filelock; lock = filelock.ReadWriteLock({str(path)!r}); lock.acquire_read()"
    other = subprocess.Popen(
        [sys.executable, "-c", f"{script}; print(flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert other.stdout and other.stdout.readline()
    assert open_snapshot("e/next", None, limited).is_dir()
    assert sorted(kept()) == ["a/foreign", "b/used", "c/old", "e/next"]
    with pytest.raises(DiskFull, match="no process uses are not enough"):
        fetch("d/older", None, limited.model_copy(update={"model_cache_bytes": 2 * size}))
    assert "c/old" in kept(), "nothing is removed in vain"
    other.communicate(b"\n")
    fetch("d/older", None, limited.model_copy(update={"model_cache_bytes": 3 * size}))
    assert sorted(kept()) == ["a/foreign", "d/older", "e/next"]


def test_a_download_leaves_free_space_on_the_disk(hub, near, folder, monkeypatch):
    for name in ("a/old", "b/next"):
        hub.site.add(name, folder)
    open_snapshot("a/old", None, near)
    release_models()
    usage = shutil.disk_usage(hub.cache)._replace(free=10**9)
    monkeypatch.setattr("models.weights.cache.shutil.disk_usage", lambda path: usage)
    fetch("b/next", None, near.model_copy(update={"model_free_bytes": 10**9}))
    assert kept() == ["b/next"]


def test_a_full_disk_is_refused_before_anything_is_fetched(hub, near, folder, monkeypatch):
    usage = shutil.disk_usage(hub.cache)._replace(free=1000)
    monkeypatch.setattr("models.weights.cache.shutil.disk_usage", lambda path: usage)
    with pytest.raises(DiskFull, match="the disk is full"):
        fetch(NAME, None, near)
    assert not [path for path in hub.paths if path.startswith("/store/")]


def test_using_a_model_makes_it_the_last_to_go(hub, near, folder):
    for name in ("a/first", "b/second"):
        hub.site.add(name, folder)
        fetch(name, None, near)
        for path in hub.cache.rglob("*"):
            os.utime(path, (1_000_000, 1_000_000))
    open_snapshot("a/first", None, near)
    assert [model.location for model in list_cached()] == ["b/second", "a/first"]


def test_evicting_frees_all_and_touches_no_other_model(hub, near, folder):
    for name in (NAME, "someone/other"):
        hub.site.add(name, folder)
    size = fetch(NAME, None, near).num_bytes
    other = fetch("someone/other", None, near).folder
    assert evict(NAME) == size
    assert evict(NAME) == 0
    assert not (hub.cache / "models--someone--tiny").exists()
    assert find_cached("someone/other", None, False) == other
    assert (other / "config.json").is_file()


def test_evicting_old_revisions_keeps_what_the_other_shares(hub, near, folder):
    fetch(NAME, None, near)
    (folder / "model.safetensors").write_bytes(b"newer")
    new = hub.site.add(NAME, folder)
    kept = fetch(NAME, None, near).folder
    assert evict(NAME, keep=new) > 1000
    assert find_cached(NAME, None, False) == kept
    assert (kept / "model.safetensors").read_bytes() == b"newer"
    assert (kept / "config.json").is_file()


def test_what_an_interrupted_fetch_left_can_be_evicted(hub, near, folder):
    hub.site.cuts += [1000] + [0] * 10
    with pytest.raises(ModelLoadError):
        fetch(NAME, None, near)
    assert evict(NAME) > 1000
    assert list_cached() == []


def test_a_snapshot_that_lacks_a_file_is_not_taken_for_whole(hub, near, folder):
    got = fetch(NAME, None, near)
    (got.folder / "tokenizer.json").unlink()
    assert find_cached(NAME, None, False) is None
    assert names(open_snapshot(NAME, None, near)) == names(got.folder)
    assert (got.folder / "tokenizer.json").is_file()


def test_a_cache_that_cannot_be_written_is_an_error_of_storage(hub, near, folder, monkeypatch):
    (hub.cache.parent / "file").write_text("")
    monkeypatch.setattr(
        "huggingface_hub.constants.HF_HUB_CACHE", str(hub.cache.parent / "file" / "hub")
    )
    with pytest.raises(StorageError, match="cannot write"):
        fetch(NAME, None, near)


def test_an_adapter_comes_with_its_model(hub, near, folder, tmp_path):
    hub.site.add("base/model", folder)
    hub.site.add("someone/adapter", adapter_of("base/model", tmp_path / "adapter"))
    fetched = dict(fetch_with_base("someone/adapter", None, near))
    assert list(fetched) == ["someone/adapter", "base/model"]
    assert "model.safetensors" in names(fetched["base/model"].folder)


def test_a_gated_model_is_fetched_with_a_token(hub, near, folder, monkeypatch):
    hub.site.add(NAME, folder, gated=True)
    with pytest.raises(ModelLoadError, match=r"gated.*there is no token.*hf auth login"):
        fetch(NAME, None, near)
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(ModelLoadError, match=r"gated.*the token at hand has no access"):
        fetch(NAME, None, near)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert fetch(NAME, None, near).num_new_bytes > 0


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**30 * 1500, "1500.0 GiB")],
)
def test_sizes_are_readable(num_bytes, text):
    assert readable_size(num_bytes) == text


def test_the_next_model_is_fetched_and_read_ahead(hub, near, folder):
    thread = prefetch(ModelEntry(name="next", location=NAME), near)
    thread.join()
    cached = find_cached(NAME, None, False)
    assert read_ahead(cached) == (folder / "model.safetensors").stat().st_size
    hub.web.requests.clear()
    assert CausalLM.load(NAME, None, near).name == NAME
    assert hub.web.requests == []  # all was there


def test_what_cannot_be_prepared_is_left_to_the_loading(hub, near):
    prefetch(ModelEntry(name="next", location="someone/else"), near).join()  # no such model
    assert prefetch(ModelEntry(name="c", kind="control", location="xz"), near) is None
