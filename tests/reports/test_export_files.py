"""Folders that an export may and may not replace."""

import json
from pathlib import Path

import pytest

from core.errors import StorageError, UsageError
from reports.exports.files import MANIFEST, exporting, write_manifest


def export(folder: Path, text: str) -> None:
    with exporting(folder, "figures") as room:
        (room / "figures.txt").write_text(text)
        write_manifest(room, "figures", {})


@pytest.mark.parametrize(
    "manifest",
    [
        '{"name": "An app of the web"}',
        "[1]",
        "no JSON",
        json.dumps({"export": "dbt", "files": {}}),
    ],
)
def test_a_manifest_of_another_program_is_kept(manifest: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / MANIFEST).write_text(manifest)
    with pytest.raises(UsageError, match="holds more than an earlier export of figures"):
        export(folder, "new")
    assert (folder / MANIFEST).read_text() == manifest


def test_a_folder_named_as_the_manifest_is_kept(tmp_path: Path) -> None:
    inner = tmp_path / "folder" / MANIFEST
    inner.mkdir(parents=True)
    (inner / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds more than"):
        export(tmp_path / "folder", "new")
    assert (inner / "mine.txt").read_text() == "mine"


def test_an_earlier_export_is_replaced_but_not_with_a_file_that_was_added(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    export(folder, "first")
    export(folder, "second")
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds more than"):
        export(folder, "third")
    assert (folder / "figures.txt").read_text() == "second"


def test_a_place_that_can_be_no_folder_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(UsageError, match="is no folder"):
        export(link, "new")
    with pytest.raises(StorageError, match="cannot write"):
        export(tmp_path / ("y" * 300), "new")
