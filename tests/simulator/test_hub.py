import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from simulator.server import Web, serve_sites
from simulator.sites.hub import TOKEN, Site

FILES = {"config.json": b'{"a": 1}', "model.safetensors": b"0123456789" * 50, "sub/x.txt": b"x"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    for name, content in FILES.items():
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    site = Site()
    site.add("someone/tiny", tmp_path / "files")
    return site


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with serve_sites([site]) as running:
        yield running


def fetch(web: Web, path: str, **headers: str) -> Any:
    request = urllib.request.Request(web.urls["hub"] + path, headers=headers)
    return urllib.request.urlopen(request)


def download(web: Web, folder: Path, name: str = "someone/tiny", **options: Any) -> Path:
    options = {"endpoint": web.urls["hub"], "cache_dir": folder, "token": False} | options
    return Path(snapshot_download(name, **options))


def test_the_hub_s_own_library_downloads_from_it(web: Web, tmp_path: Path) -> None:
    folder = download(web, tmp_path / "cache")
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}
    assert found == FILES


def test_commits_have_names(web: Web, site: Site, tmp_path: Path) -> None:
    first = HfApi(endpoint=web.urls["hub"]).model_info("someone/tiny", token=False).sha
    (tmp_path / "files" / "config.json").write_bytes(b"{}")
    second = site.add("someone/tiny", tmp_path / "files")
    site.add("someone/tiny", tmp_path / "files", revision="v1")
    assert first != second
    api = HfApi(endpoint=web.urls["hub"], token=False)
    for revision in (None, "main", "v1", second):
        assert api.model_info("someone/tiny", revision=revision).sha == second
    assert api.model_info("someone/tiny", revision=first).sha == first


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("someone/absent", {}, RepositoryNotFoundError),
        ("someone/absent", {"token": TOKEN}, RepositoryNotFoundError),
        ("someone/tiny", {"revision": "v9"}, RevisionNotFoundError),
    ],
)
def test_what_is_not_there_is_refused_as_the_hub_does(
    web: Web, tmp_path: Path, name: str, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        download(web, tmp_path / "cache", name, **options)


def test_a_file_that_is_not_there_is_refused(web: Web, tmp_path: Path) -> None:
    with pytest.raises(EntryNotFoundError):
        hf_hub_download(
            "someone/tiny", "absent.json", endpoint=web.urls["hub"], cache_dir=tmp_path, token=False
        )


def test_a_gated_model_shows_its_record_and_keeps_its_files(
    web: Web, site: Site, tmp_path: Path
) -> None:
    site.add("someone/gated", tmp_path / "files", gated=True)
    info = HfApi(endpoint=web.urls["hub"], token=False).model_info("someone/gated")
    assert info.gated == "manual"
    for token in (False, "hf_another"):
        with pytest.raises(GatedRepoError):
            download(web, tmp_path / "cache", "someone/gated", token=token)
    assert (
        download(web, tmp_path / "cache", "someone/gated", token=TOKEN) / "config.json"
    ).exists()


def test_large_files_are_answered_in_ranges(web: Web) -> None:
    path = "/someone/tiny/resolve/main/model.safetensors"
    answer = fetch(web, path, Range="bytes=490-")
    assert (answer.status, answer.read()) == (206, b"0123456789")
    assert answer.headers["Content-Range"] == "bytes 490-499/500"
    with pytest.raises(urllib.error.HTTPError, match="416"):
        fetch(web, path, Range="bytes=500-")


def test_answers_of_the_store_can_be_cut(web: Web, site: Site) -> None:
    site.cuts.append(7)
    path = "/someone/tiny/resolve/main/model.safetensors"
    with pytest.raises(IncompleteRead) as caught:
        fetch(web, path).read()
    assert caught.value.partial == b"0123456"
    assert fetch(web, path).read() == FILES["model.safetensors"]
