"""Print sizes and coupling of the code, as the section of docs/architecture.md shows them.

Nothing limits these figures. ``make figures`` writes them into the page.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.files import ROOT, is_product, list_files, read, room_of

PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- figures: written by `make figures` -->\n"
END = "<!-- end of figures -->\n"
NUM_COMMITS = 200
# Folders that one must know to change how anything works.
SPINE = (
    "core", "instruments", "models/scoring", "models/weights", "warehouse", "flows", "tasks",
    "deployments",
)  # fmt: skip
NOT_KERNEL = ("extras", "simulator")


def main() -> int:
    """Print the figures, or write them into the page if ``--write`` is given."""
    section = render()
    if "--write" not in sys.argv[1:]:
        print(section, end="")
        return 0
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{section}{END}{after}", encoding="utf-8")
    return 0


def render() -> str:
    """Return the two tables in Markdown."""
    product = [file for file in list_files() if is_product(file)]
    kernel = [file for file in product if room_of(file) not in NOT_KERNEL]
    spine = [file for file in product if str(file).startswith(SPINE)]
    tests = [file for file in list_files() if "tests" in file.parts]
    sql = [file for file in list_files("*.sql") if "tests" not in file.parts]
    parts = {
        "spine: what one must know to change how anything works": spine,
        "kernel: all but extras and simulator": kernel,
        "product": product,
        "SQL": sql,
        "tests": tests,
    }
    lines = ["| part | files | lines |", "|---|---|---|"]
    for name, files in parts.items():
        lines.append(f"| {name} | {len(files):,} | {num_lines(files):,} |")
    rooms, files_touched = coupling()
    lines += [
        "",
        f"| coupling, median of the last {NUM_COMMITS} commits | |",
        "|---|---|",
        f"| rooms a commit | {rooms:g} |",
        f"| files a commit | {files_touched:g} |",
    ]
    return "\n".join(lines) + "\n"


def num_lines(files: Sequence[Path]) -> int:
    """Return the number of lines of files."""
    return sum(read(file).count("\n") for file in files)


def coupling() -> tuple[float, float]:
    """Return two medians over the last commits without merges: changed rooms, changed files."""
    command = [
        "git", "log", "--no-merges", f"-{NUM_COMMITS}", "--format=%x00", "--name-only",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    commits = [text.split() for text in done.stdout.split("\0") if text.strip()]
    rooms = [len({room_of(Path(name)) for name in names if is_code(name)}) for names in commits]
    return statistics.median(rooms), statistics.median(map(len, commits))


def is_code(name: str) -> bool:
    """Return True for a file in a room of the product other than docs."""
    return is_product(Path(name)) and room_of(Path(name)) != "docs"


if __name__ == "__main__":
    sys.exit(main())
