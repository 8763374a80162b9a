from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.corpus import Partition
from core.errors import FutureMonth, MalformedInput, StorageError, UsageError
from core.month import Month
from core.storage import Store
from crawlers.import_texts import ImportOptions, import_texts
from crawlers.user_files import regular_files, require_target, require_unicode


def test_files_are_found_sorted_by_relative_path(tmp_path: Path) -> None:
    for name in ("b/2", "b/1", "a", ".hidden/3", "b/.4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert regular_files(tmp_path) == ["a", "b/1", "b/2"]
    with pytest.raises(FileNotFoundError):
        regular_files(tmp_path / "nowhere")


def test_lone_surrogates_are_refused() -> None:
    assert require_unicode("naïve \U0001f600", "here") == "naïve \U0001f600"
    with pytest.raises(MalformedInput, match=r"here: character 2 is a lone .*U\+D83D"):
        require_unicode("ab\ud83d", "here")


def test_what_can_be_imported_as(store: Store, tmp_path: Path) -> None:
    partition = Partition("notes", Month("2024-01"))
    for content in ("text", "image", "audio"):
        require_target(partition, content, store)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs a name"):
        require_target(Partition("", None), "text", store)
    with pytest.raises(FutureMonth):
        require_target(Partition("notes", Month("2999-01")), "text", store)
    with pytest.raises(StorageError, match="cannot name a folder"):
        require_target(Partition("..", None), "text", store)
    file = tmp_path / "a.json"
    file.write_text(json.dumps(["words and words " * 20]))
    import_texts(file, partition, store, ImportOptions())
    require_target(partition, "image", store)  # sealing itself asks for --replace
    require_target(Partition("notes", None), "text", store)
    require_target(Partition("others", None), "image", store)
    with pytest.raises(UsageError, match="notes 2024-01 is sealed as text, so image needs"):
        require_target(Partition("notes", None), "image", store)
