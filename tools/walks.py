"""Check of the walks in docs/architecture.md: their files exist, and the number of files is right.

A walk lists the files that a reader opens to follow one process through the code.
"""

from __future__ import annotations

import re

from tools.files import ROOT

PAGE = ROOT / "docs" / "architecture.md"
HEADING = "## Walks"
# A row of the table: item, number of files, way.
ROW = re.compile(r"\| (?P<item>[^|]+) \| (?P<count>\d+) \| (?P<way>.+) \|")
NAME = re.compile(r"`([^`]+\.(?:py|sql|yaml))`")


def faults() -> list[str]:
    """Return the faults of the table of walks."""
    return page_faults(PAGE.read_text(encoding="utf-8"))


def page_faults(text: str) -> list[str]:
    """Return a fault for each missing file, and for each wrong number of files."""
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    found = []
    rows = list(ROW.finditer(section))
    if not rows:
        found.append(f"docs/architecture.md: no walk below the heading {HEADING!r}")
    for row in rows:
        item = row["item"]
        names = NAME.findall(row["way"])
        if len(names) != int(row["count"]):
            found.append(
                f"docs/architecture.md: walk {item!r}: {row['count']} files stated, "
                f"{len(names)} listed"
            )
        missing = [name for name in names if "<" not in name and not exists(name)]
        found += [f"docs/architecture.md: walk {item!r}: there is no {name}" for name in missing]
    return found


def exists(name: str) -> bool:
    """Return True if a path exists in the repository, or a bare file name in the warehouse."""
    if "/" in name:
        return (ROOT / name).exists()
    return any((ROOT / "warehouse").rglob(name))
