import dataclasses
from typing import Any

from core.cells.losses import Cell
from core.corpus.partition import Partition
from core.month import Month

MARCH = Partition("wikipedia", Month("2024-03"))
CELL = Cell("org/model", "0123456789abcdef", MARCH, "fedcba9876543210", "default", "abcd1234")


def test_the_path_says_what_decides_the_content() -> None:
    assert CELL.path == (
        "losses/model=org%2Fmodel/source=wikipedia/month=2024-03/"
        "default-0123456789ab-fedcba987654-abcd1234.parquet"
    )


def test_every_part_of_a_cell_is_in_its_path() -> None:
    changes: list[dict[str, Any]] = [
        {}, {"model": "org/model2"}, {"revision": "1" * 16}, {"partition_digest": "2" * 16},
        {"partition": Partition("wikipedia", None)}, {"partition": Partition("arxiv", MARCH.month)},
        {"protocol": "sliding"}, {"scoring": "ffff0000"},
    ]  # fmt: skip
    assert len({dataclasses.replace(CELL, **each).path for each in changes}) == len(changes)


def test_no_name_leaves_the_losses_folder() -> None:
    cell = dataclasses.replace(CELL, model="../../etc", protocol="a/../b")
    assert cell.path.startswith("losses/model=..%2F..%2Fetc/")
    assert cell.path.count("/") == CELL.path.count("/")
