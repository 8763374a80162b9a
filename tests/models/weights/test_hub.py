import socket
from pathlib import Path

import pytest

from core.errors import ModelLoadError
from core.settings import Settings
from models.catalogue import ModelEntry
from models.weights.cache import fetch
from models.weights.hub import ask_hub, check_access, is_on_hub
from simulator.server import Fault
from simulator.sites.hub import TOKEN
from tests.models.conftest import adapter_of

UNREACHABLE = {"hub": "http://127.0.0.1:9"}


def entry(name: str, **changes: object) -> ModelEntry:
    return ModelEntry(name=name, location=changes.pop("location", name), **changes)


def test_a_listing_has_what_is_needed_and_its_sizes(hub, near, llama_folder):
    commit = hub.site.add("someone/tiny", Path(llama_folder))
    listing = ask_hub("someone/tiny", None, near)
    assert (listing.commit, listing.is_adapter) == (commit, False)
    sizes = {file.name: file.size for file in listing.files}
    assert sizes["model.safetensors"] == (Path(llama_folder) / "model.safetensors").stat().st_size
    assert listing.num_bytes == sum(sizes.values())
    assert not [path for path in hub.paths if "/resolve/" in path or "/store/" in path]


def test_every_model_that_cannot_be_had_is_named_before_a_run(hub, near, llama_folder, tmp_path):
    folder = Path(llama_folder)
    for name in ("a/open", "a/also", "a/cached"):
        hub.site.add(name, folder)
    hub.site.add("a/gated", folder, gated=True)
    hub.site.add("a/adapter", adapter_of("a/gated", tmp_path / "adapter"))
    mine = adapter_of("a/absent", tmp_path / "mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    hub.site.add("a/unfinished", tmp_path / "empty")
    fetch("a/cached", None, near)
    entries = [
        entry("a/open"),
        entry("renamed", location="a/also"),
        entry("a/cached"),
        entry("a/gated"),
        entry("a/absent"),
        entry("a/open at v9", location="a/open", revision="v9"),
        entry("a/adapter"),
        entry("mine", location=str(mine)),
        entry("a/unfinished"),
        entry("folder", location=llama_folder),
        ModelEntry(name="control:zstd", kind="control", location="zstd"),
    ]
    problems = check_access(entries, near)
    says = {
        "a/gated": "gated on the hub",
        "a/absent": "no such model",
        "a/open at v9": "no revision 'v9'",
        "a/adapter": "a/gated: is gated on the hub",
        "mine": "a/absent: not a folder here, and the hub has no such model",
        "a/unfinished": "no weights",
    }
    assert list(problems) == list(says)
    for name, text in says.items():
        assert text in problems[name]


def test_access_is_asked_for_with_the_token_at_hand(hub, near, llama_folder, monkeypatch):
    hub.site.add("a/gated", Path(llama_folder), gated=True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert check_access([entry("a/gated")], near) == {}


def test_a_hub_out_of_reach_is_no_problem_for_what_is_cached(hub, near, llama_folder, monkeypatch):
    hub.site.add("a/cached", Path(llama_folder))
    fetch("a/cached", None, near)
    connect, asked = socket.socket.connect, []

    def count(self, address):
        asked.append(address)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", count)
    cut_off = Settings(device="cpu", sites=UNREACHABLE)
    problems = check_access([entry("a/cached"), entry("a/other")], cut_off)
    assert list(problems) == ["a/other"]
    assert "check the name, the revision, the network" in problems["a/other"]
    assert len(asked) == 1, "one model is asked for, once"


def test_a_hub_that_does_not_answer_is_given_up(hub, near, llama_folder):
    hub.site.add("a/slow", Path(llama_folder))
    hub.web.faults.append(Fault("disconnect", "hub", times=100))
    assert "did not give it" in check_access([entry("a/slow")], near)["a/slow"]
    assert len(hub.web.requests) == 1


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"<html>", b'{"id": "a/odd", "sha": "../..", "siblings": []}']
)
def test_an_answer_that_is_none_of_the_hub_s_is_refused(hub, near, answer):
    hub.web.faults.append(Fault("status", "hub", status=200, body=answer))
    with pytest.raises(ModelLoadError, match="a/odd"):
        ask_hub("a/odd", None, near)


def test_what_is_on_the_hub_is_told_by_kind_and_place(llama_folder):
    assert is_on_hub(entry("someone/tiny"))
    assert not is_on_hub(entry("folder", location=llama_folder))
    assert not is_on_hub(entry("absent", location="/no/such/folder"))
    assert not is_on_hub(ModelEntry(name="control:zstd", kind="control", location="zstd"))
