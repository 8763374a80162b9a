"""The minima that are told are those that the code asks for."""

import re
from pathlib import Path
from typing import Any

from warehouse.estimates import contamination
from warehouse.estimates.changes import MIN_MONTHS
from warehouse.estimates.pairs import MIN_AFTER, MIN_BEFORE, MIN_FREE
from warehouse.estimates.panel import MIN_BLOCKS

ROOT = Path(__file__).resolve().parents[3]


def test_the_table_of_the_page_is_the_view(peek: Any) -> None:
    page = (ROOT / "docs" / "cutoffs.md").read_text(encoding="utf-8")
    table = page.partition("<!-- minima")[2].partition("<!-- end of minima")[0]
    told = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (\d+) \|$", table, re.MULTILINE)
    rows = peek("from minima")
    assert told == [(row["figure"], row["counted"], str(row["minimum"])) for row in rows]


def test_the_estimates_ask_for_what_is_told(peek: Any) -> None:
    asked = {
        "blocks of a panel": MIN_BLOCKS,
        "months of a cutoff": MIN_MONTHS,
        "months before a cutoff": MIN_BEFORE,
        "months after a cutoff": MIN_AFTER,
        "months of a side of a month": contamination.MIN_NEIGHBOURS,
        "months of two changes": 2 + 4 + MIN_FREE,  # level, theta, two steps of any month
    }
    for name, number in asked.items():
        assert peek(f"select minimum('{name}') as told") == [{"told": number}]
