"""Command that writes the result of each query in the pages below the query.

python -m benchmarks.write_guide tidemark-demo [walkthrough]

Pages for analysts and the coverage page have results of the demo; the walkthrough has those of its
own data root, the second argument. The questions of docs/analysts.md are those of
``warehouse/reference/start_here.yml``. `make verify-demo` compares what pages of the demo print.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa

from benchmarks.coverage_rows import row_differences, with_rows
from core.settings import Settings
from warehouse.database.questions import list_analyst_questions
from warehouse.read.query import query

_DOCS = Path(__file__).resolve().parents[1] / "docs"
ANALYSTS = _DOCS / "analysts.md"
COVERAGE = _DOCS / "coverage-of-the-papers.md"
WALKTHROUGH = _DOCS / "walkthrough.md"
GUIDES = (ANALYSTS, _DOCS / "cutoffs.md", COVERAGE)
_BEGIN = "<!-- questions: written from warehouse/reference/start_here.yml -->\n"
_END = "<!-- end of questions -->\n"
_WIDTH = 125
MAX_ROWS = 8
_BLOCK = re.compile(r"```sql\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
# Columns that depend on the machine or on the moment; the rows of their tables are not compared.
MEASURED = {"hours", "run_at", "seconds_per_megabyte"}
TOLERANCE = 0.01  # of a number, and at least of 1; weights depend a little on the processor


def written(page: Path, settings: Settings) -> str:
    """Return a page with the result of each query below it, and with numbers of rows."""
    text = page.read_text("utf-8")
    if page == COVERAGE:
        return with_answers(with_rows(text, settings), settings, 0)
    if page == ANALYSTS:
        text = with_questions(text)
    return with_answers(text, settings)


def page_differences(page: Path, settings: Settings) -> Iterator[str]:
    """Yield what a page prints otherwise than its queries give."""
    text = page.read_text("utf-8")
    if page == COVERAGE:
        yield from row_differences(text, settings)
        yield from differences(text, settings, 0)
    else:
        yield from differences(text, settings)


def with_questions(guide: str) -> str:
    """Return the guide for analysts with all questions, and the results that it prints of them.

    A question whose query is new has no result yet.
    """
    begin, _, rest = guide.partition(_BEGIN)
    former, _, end = rest.partition(_END)
    printed = {match[1]: match[2] for match in _BLOCK.finditer(former)}
    parts = []
    for each in list_analyst_questions():
        told = f"Without a row in the demo: {each.is_empty}." if each.is_empty else ""
        text = " ".join(filter(None, (f"**{each.question}**", each.note, told)))
        lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
        sql = f"{each.query};\n"
        found = printed.get(sql)
        result = f"\n```text\n{found}```\n" if found else ""
        parts.append("\n".join(lines) + f"\n\n```sql\n{sql}```\n{result}\n")
    return f"{begin}{_BEGIN}\n{''.join(parts)}{_END}{end}"


def printed_answers(guide: str) -> dict[str, str]:
    """Return what a guide prints below each query, by the query without its semicolon."""
    return {match[1].rstrip().rstrip(";"): match[2] or "" for match in _BLOCK.finditer(guide)}


def with_answers(guide: str, settings: Settings, tolerance: float = TOLERANCE) -> str:
    """Return a guide with the result of each query below it; replace those that differ."""

    def answered(match: re.Match[str]) -> str:
        found = answer(match[1], settings)
        if match[2] and not any(_block_differences(match[2], found, tolerance)):
            return match[0]
        return f"```sql\n{match[1]}```\n\n```text\n{found}```\n"

    return _BLOCK.sub(answered, guide)


def answer(sql: str, settings: Settings) -> str:
    """Return the first rows of a query as text."""
    return lay_out(query(settings, sql.rstrip().rstrip(";")))


def differences(guide: str, settings: Settings, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Yield what a guide prints otherwise than its queries give."""
    for match in _BLOCK.finditer(guide):
        yield from _block_differences(match[2] or "", answer(match[1], settings), tolerance)


def _block_differences(printed: str, found: str, tolerance: float) -> Iterator[str]:
    header = found.partition("\n")[0]
    if MEASURED.isdisjoint(header.split()):
        yield from line_differences(printed, found, tolerance)
    else:
        yield from line_differences(printed.partition("\n")[0], header)


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


def line_differences(printed: str, found: str, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Yield the lines of two printed tables that differ in a word, or a number by much.

    ``tolerance`` is a share of the number, and at least of 1. Lines of compressors alone must be
    equal: what a compressor gives does not depend on the processor.
    """
    lines = zip_longest(printed.splitlines(), found.splitlines(), fillvalue="")
    for one, other in lines:
        allowed = 0 if _is_of_compressors(one) else tolerance
        words = zip_longest(one.split(), other.split(), fillvalue="")
        if not all(_are_near(word, another, allowed) for word, another in words):
            yield f"printed {one.strip()!r}, found {other.strip()!r}"


def _is_of_compressors(line: str) -> bool:
    """Return True if a line names a compressor, and no model that the demo trains."""
    return "control:" in line and "reference-" not in line


def _are_near(word: str, other: str, tolerance: float) -> bool:
    """Return True if two words are equal, or numbers that differ by rounding."""
    if word == other:
        return True
    try:
        one = float(word)
        another = float(other)
    except ValueError:
        return False
    return abs(one - another) <= tolerance * max(1.0, abs(one))


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main(arguments: list[str]) -> None:
    """Write the pages from a demo, and the walkthrough if its data root is given, too."""
    pages = dict.fromkeys(GUIDES, arguments[0])
    if len(arguments) > 1:
        pages[WALKTHROUGH] = arguments[1]
    for page, home in pages.items():
        page.write_text(written(page, Settings(home=home)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
