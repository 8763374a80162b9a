"""Check by simulation that intervals contain the truth, and that nothing is found without effect.

    python -m benchmarks.statistics                               all worlds: two hours
    python -m benchmarks.statistics --worlds 100 --designs step "two steps"
    python -m benchmarks.statistics --record    write the shares that the site shows, too
    python -m benchmarks.statistics --figures estimated_cutoff --worlds 25 --record   some of them

A row is one figure in one kind of world. The exit code is 1 if a share's Wilson interval lies
outside its bound. Processor time of each kind of world goes to standard error.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.__main__ import headline
from benchmarks.statistics import intervals, months
from benchmarks.statistics.panels import designs
from benchmarks.statistics.tally import Tally, table
from core.version import code_version

SHARES = Path(__file__).parents[2] / "reports" / "site" / "data" / "simulations.csv"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a figure is outside its bound."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    names = [*intervals.WORLDS, *designs()]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=300, help="of each kind (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="other worlds of the same kinds")
    parser.add_argument("--designs", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--figures", nargs="+", default=[""], metavar="PREFIX", help="these alone")
    parser.add_argument("--record", action="store_true", help=f"write {SHARES.name}, too")
    parsed = parser.parse_args(given)
    lines = [headline(["python", "-m", "benchmarks.statistics", *given]), "", *table([])]
    print("\n".join(lines), flush=True)
    tallies: list[Tally] = []
    for name in parsed.designs:
        began = time.process_time()
        measure = intervals.measure if name in intervals.WORLDS else months.measure
        tallied = measure([name], parsed.worlds, parsed.seed)
        found = [tally for tally in tallied if tally.figure.startswith(tuple(parsed.figures))]
        print(f"{name}: {time.process_time() - began:.0f} s of processor time", file=sys.stderr)
        print("\n".join(tally.row for tally in found), flush=True)
        if parsed.record:
            record_shares(SHARES, found, code_version(), parsed.figures)
        tallies += found
    failures = sum(tally.verdict.startswith("FAILED") for tally in tallies)
    print(f"\n{failures or 'None'} of {len(tallies)} shares outside their bounds.")
    return 1 if failures else 0


def record_shares(
    file: Path, tallies: Sequence[Tally], commit: str, figures: Sequence[str] = ("",)
) -> None:
    """Write the shares of these kinds of worlds in place of the former ones.

    Shares of other kinds, and of figures that begin with none of ``figures``, stay as they are.
    """
    worlds = {tally.world for tally in tallies}
    former = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    kept = [
        list(row.values())
        for row in former
        if row["world"] not in worlds or not row["figure"].startswith(tuple(figures))
    ]
    new = [
        [tally.world, tally.figure, tally.kind.name, len(tally.hits), sum(tally.hits),
         tally.bound, tally.verdict, commit]
        for tally in tallies
    ]  # fmt: skip
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([former.fieldnames or [], *kept, *new])


if __name__ == "__main__":
    sys.exit(main())
