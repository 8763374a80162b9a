from __future__ import annotations

import dataclasses

from core.cells import Cell
from core.corpus import Partition
from core.month import Month

CELL = Cell(
    model="org/model",
    revision="0123456789abcdef",
    partition=Partition("wikipedia", Month("2024-03")),
    partition_digest="fedcba9876543210",
    protocol="default",
    scoring="abcd1234",
)


def test_the_path_says_what_decides_the_content() -> None:
    assert CELL.path == (
        "losses/model=org%2Fmodel/source=wikipedia/month=2024-03/"
        "default-0123456789ab-fedcba987654-abcd1234.parquet"
    )


def test_every_part_of_a_cell_is_in_its_path() -> None:
    others = [
        dataclasses.replace(CELL, model="org/model2"),
        dataclasses.replace(CELL, revision="1" * 16),
        dataclasses.replace(CELL, partition=Partition("wikipedia", None)),
        dataclasses.replace(CELL, partition=Partition("arxiv", Month("2024-03"))),
        dataclasses.replace(CELL, partition_digest="2" * 16),
        dataclasses.replace(CELL, protocol="sliding"),
        dataclasses.replace(CELL, scoring="ffff0000"),
    ]
    assert len({cell.path for cell in [CELL, *others]}) == 1 + len(others)


def test_no_name_leaves_the_losses_folder() -> None:
    cell = dataclasses.replace(CELL, model="../../etc", protocol="a/../b")
    assert cell.path.startswith("losses/model=..%2F..%2Fetc/")
    assert cell.path.count("/") == CELL.path.count("/")


def test_undated_cells_have_their_own_folder() -> None:
    cell = dataclasses.replace(CELL, partition=Partition("books", None))
    assert "/source=books/month=undated/" in cell.path
    assert str(cell) == "org/model on books undated under default"
