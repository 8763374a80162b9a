"""Texts of the open web are filtered, here of JSON lines."""

import json
from pathlib import Path

import pytest

from core.errors import UsageError
from core.storage.store import Store
from crawlers.imports.dating import Dating
from crawlers.imports.documents import ImportOptions
from crawlers.imports.sets import import_set

STORIES = (
    "The harbour of the old town was rebuilt after the storm, and ships came back. Its wardens say "
    "that the new wall will hold for the next hundred years of winters.",
    "A museum of clocks has opened in the mill by the river, free for schools. Most of the pieces "
    "were found in the attics of the village, and mended by their owners.",
)


def write_rows(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    texts = [f"Subscribe to letter {number}!\n{text}" for number, text in enumerate(STORIES)]
    texts.append("1 2 3 4 | " * 60)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def options(scratch: Path) -> ImportOptions:
    dating = Dating(is_undated=True)
    return ImportOptions(dating, sift=True, language="en", scratch=scratch)


@pytest.mark.smoke
def test_repeated_lines_are_cut_and_lists_of_numbers_dropped(store: Store, tmp_path: Path) -> None:
    [seal] = import_set([write_rows(tmp_path)], "web", store, options(tmp_path)).seals
    assert seal.num_documents == 2
    assert seal.num_bytes == sum(map(len, STORIES))
    dropped = seal.manifest["dropped"]
    assert isinstance(dropped, dict)
    assert sum(dropped.values()) == 1


def test_without_the_extra_nothing_is_filtered_nor_sealed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlers.imports.sets.import_parts", lambda part: ())
    with pytest.raises(UsageError, match="filtered by the extra import_sets"):
        import_set([write_rows(tmp_path)], "web", store, options(tmp_path))
    assert store.list("corpus/*/*/*") == []
