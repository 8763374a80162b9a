"""Run the demo with several seeds; check that its figures agree with the planted cutoffs.

For each seed, the intervals of the estimated cutoffs of the demo's two reference models must have
the planted cutoffs. The 95 % intervals of both gaps must lie above 0. The interval of the
compressor zstd must include 0. The panel must give both gaps, with intervals above 0, and give none
to compressors. README's table, and what the pages for analysts and the coverage page print, must be
those of seed 0. With ``--walkthrough HOME``, the figures of docs/walkthrough.md must be those of
the data root in which its commands ran.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.write_guide import GUIDES, WALKTHROUGH, line_differences, page_differences
from core.environment import set_library_defaults
from core.month import Month
from core.plugins import import_parts
from core.settings import Settings, load_settings
from warehouse.read.query import query

CONTROL = "control:zstd"
README = Path(__file__).resolve().parents[1] / "README.md"
TABLE = "bits per byte before and after the cutoff"  # README's table begins with it


def main() -> int:
    """Return the exit code: 0 if every seed passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0")
    parser.add_argument("--root", type=Path, default=Path("tidemark-demo/verify"))
    parser.add_argument("--walkthrough", type=Path, help="data root of docs/walkthrough.md")
    arguments = parser.parse_args()
    failures = 0
    if arguments.walkthrough is not None:
        settings = load_settings(home=str(arguments.walkthrough))
        failures += not check(page_finding(WALKTHROUGH, settings))
    for seed in range(arguments.seeds):
        home = arguments.root / f"seed-{seed}"
        began = time.monotonic()
        tidemark = str(Path(sys.executable).parent / "tidemark")
        command = [tidemark, "demo", "--seed", str(seed), "--home", str(home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"seed {seed} ({time.monotonic() - began:.0f} s)", flush=True)
        if done.returncode != 0:
            print(done.stderr[-2000:])
            failures += 1
            continue
        settings = load_settings(home=str(home))
        set_library_defaults(settings)
        failures += sum(not check(finding) for finding in findings(settings))
        if seed == 0:
            failures += sum(not check(each) for each in printed_findings(settings, done.stdout))
    print("all passed" if not failures else f"{failures} checks FAILED")
    return 1 if failures else 0


def check(finding: tuple[bool, str]) -> bool:
    """Print a finding and return whether it passed."""
    passed, text = finding
    print(f"  {'ok    ' if passed else 'FAILED'} {text}")
    return passed


def findings(settings: Settings) -> list[tuple[bool, str]]:
    """Compare a demo's figures with the planted values; return pairs (passed, description)."""
    found = []
    [demonstration] = import_parts("demonstration")
    cutoffs: dict[str, Month] = demonstration.CUTOFFS
    for name, cutoff in cutoffs.items():
        found.append(cutoff_finding(settings, name, cutoff))
        low, high = gap_interval(settings, name, cutoff)
        found.append((low > 0, f"{name}: gap interval [{low:.4f}, {high:.4f}] above 0"))
        low, high = gap_interval(settings, CONTROL, cutoff)
        found.append(
            (low <= 0 <= high, f"{CONTROL} split after {cutoff}: [{low:.4f}, {high:.4f}] has 0")
        )
    return found + panel_findings(settings, list(cutoffs))


def cutoff_finding(settings: Settings, name: str, cutoff: Month) -> tuple[bool, str]:
    """Check that a model has an estimated cutoff, whose interval has the planted month."""
    columns = "cutoff_text, estimated_cutoff_low, estimated_cutoff_high, reason"
    where = "where model = ? and scope = 'all' and protocol = 'default'"
    sql = f"select {columns} from estimated_cutoff {where}"
    [(text, low, high, reason)] = rows_of(settings, sql, [name])
    planted = cutoff.first_day
    # An end that is NULL is open.
    is_inside = (low is None or low <= planted) and (high is None or planted <= high)
    return (
        text is not None and is_inside,
        f"{name}: estimated cutoff {text or reason}, planted {cutoff}",
    )


def panel_findings(settings: Settings, planted: list[str]) -> list[tuple[bool, str]]:
    """Check the panel's gaps over all sources: above 0 if planted, and none of a compressor."""
    found = []
    sql = "from control_adjusted_gap where protocol = 'default' and scope = 'all' order by model"
    rows = {row["model"]: row for row in query(settings, sql).to_pylist()}
    for name in planted:
        row = rows[name]
        low, high = row["adjusted_gap_low"], row["adjusted_gap_high"]
        shown = f"interval [{low:.4f}, {high:.4f}] above 0" if low else row["reason"]
        text = f"{name}: adjusted gap of basis {row['basis']}, {shown}"
        found.append((row["basis"] == "panel" and low is not None and low > 0, text))
    sql = "select distinct model from control_adjusted_gap where adjusted_gap is not null"
    controls = [name for (name,) in rows_of(settings, sql) if name.startswith("control:")]
    return [*found, (not controls, f"compressors with a gap against the panel: {controls}")]


def printed_findings(settings: Settings, output: str) -> Iterator[tuple[bool, str]]:
    """Compare what README, the pages for analysts and the coverage page print with the demo."""
    for guide in GUIDES:
        yield page_finding(guide, settings)
    # The last lines are the addresses of the data root.
    printed, found = (
        text.partition(TABLE)[2].partition("\ndatabase")[0]
        for text in (README.read_text(encoding="utf-8"), output)
    )
    wrong = list(line_differences(printed, found))
    yield not wrong, "\n    ".join([f"{README.name}: {len(wrong)} lines differ", *wrong])


def page_finding(page: Path, settings: Settings) -> tuple[bool, str]:
    """Compare what a page prints with what its queries give on a data root."""
    wrong = list(page_differences(page, settings))
    return not wrong, "\n    ".join([f"{page.name}: {len(wrong)} lines differ", *wrong])


def rows_of(settings: Settings, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query as tuples."""
    return [tuple(row.values()) for row in query(settings, sql, values).to_pylist()]


def gap_interval(settings: Settings, model: str, cutoff: Month) -> tuple[float, float]:
    """Return the 95 % interval of a model's gap over all sources, split after ``cutoff``."""
    sql = (
        "select bits_per_byte_gap_low, bits_per_byte_gap_high "
        "from train_test_gap_at(?) "
        "where model = ? and protocol = 'default' and scope = 'all'"
    )
    [(low, high)] = rows_of(settings, sql, [(cutoff + 1).first_day, model])
    return low, high


if __name__ == "__main__":
    sys.exit(main())
