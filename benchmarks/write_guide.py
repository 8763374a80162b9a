"""Command that writes the result of each query in the pages for analysts below the query.

python -m benchmarks.write_guide tidemark-demo
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa

from core.settings import Settings
from warehouse.read.query import query

_DOCS = Path(__file__).resolve().parents[1] / "docs"
GUIDES = (_DOCS / "analysts.md", _DOCS / "cutoffs.md")
MAX_ROWS = 8
_BLOCK = re.compile(r"```sql\n(.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)


def with_answers(guide: str, settings: Settings) -> str:
    """Return a guide with the result of each query below it; replace former results."""

    def answered(match: re.Match[str]) -> str:
        table = query(settings, match[1].rstrip().rstrip(";"))
        return f"```sql\n{match[1]}```\n\n```text\n{lay_out(table)}```\n"

    return _BLOCK.sub(answered, guide)


def lay_out(table: pa.Table) -> str:
    """Return the first rows of a table as text with aligned columns."""
    rows = [
        [_shown(value) for value in row.values()] for row in table.slice(0, MAX_ROWS).to_pylist()
    ]
    lines = [table.column_names, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )
    left = table.num_rows - MAX_ROWS
    return text + (f"… and {left} more\n" if left > 0 else "")


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    for guide in GUIDES:
        text = with_answers(guide.read_text("utf-8"), Settings(home=sys.argv[1]))
        guide.write_text(text, encoding="utf-8")
