"""Who reads the public views: each view of ``main`` names a file that queries it."""

import re
from pathlib import Path

import pytest

from core.plugins import list_folders
from warehouse.database.schema import (
    describe_view,
    is_macro,
    list_views,
    public_name,
    read_old_names,
    read_view_code,
)

ROOT = Path(__file__).resolve().parents[2]
DESCRIBED = {name: describe_view(file) for name, file in list_views().items()}
READS = {name: read_view_code(file).reads for name, file in list_views().items()}
PUBLIC = sorted(name for name, described in DESCRIBED.items() if not described.is_internal)


def code_of(file: Path) -> str:
    lines = file.read_text(encoding="utf-8").splitlines()
    mark = "--" if file.suffix == ".sql" else "\0"
    return "\n".join(line.partition(mark)[0] for line in lines)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_named_reader_queries_the_view(name: str) -> None:
    query = re.compile(rf"\b(?:from|join)\s+\(*(?:main\.)?{re.escape(public_name(name))}\b")
    for reader in DESCRIBED[name].readers:
        assert query.search(code_of(ROOT / reader)), f"{reader} does not query {name}"


def test_each_view_of_main_has_a_reader() -> None:
    main = [name for name in PUBLIC if DESCRIBED[name].schema == "main"]
    assert [name for name in main if not DESCRIBED[name].readers] == []


def test_main_has_at_most_45_views() -> None:
    files = list_views()
    main = [name for name in PUBLIC if DESCRIBED[name].schema == "main"]
    assert len([name for name in main if not is_macro(files[name])]) <= 45


def test_each_view_of_papers_has_a_reader_or_serves_a_row_of_the_papers() -> None:
    page = (ROOT / "docs" / "coverage-of-the-papers.md").read_text(encoding="utf-8")
    papers = [name for name in PUBLIC if DESCRIBED[name].schema == "papers"]
    idle = [name for name in papers if not DESCRIBED[name].readers]
    assert [name for name in idle if f"papers.{name}_at(" not in page] == []


def test_views_of_the_kernel_read_no_view_of_an_extra() -> None:
    """An extra can be deleted with its views."""
    kernel = {name for name, file in list_views().items() if ROOT / "warehouse" in file.parents}
    extras = READS.keys() - kernel
    assert {name: READS[name] & extras for name in kernel if READS[name] & extras} == {}
    assert [name for name in kernel if DESCRIBED[name].schema == "papers"] == []


def test_no_former_name_is_in_main() -> None:
    main = {name for name, described in DESCRIBED.items() if described.schema == "main"}
    folders = [ROOT / "warehouse" / "views", *list_folders("views")]
    former = [name.partition("(")[0] for folder in folders for name in read_old_names(folder)]
    assert main.intersection(former) == set()
    assert len(set(former)) == len(former)
