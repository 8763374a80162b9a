"""Check by simulation the coverage of the intervals in the views of Scylla's puzzles.

Simulated models with known accuracies answer 17 puzzles. Their answers are inserted into the
warehouse's tables, and the views are queried as analysts query them. The item in distribution (ID)
and the item out of distribution (OOD) with the same number may be correlated; other items are not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.database.objects import create_objects
from warehouse.database.statements import Row

LEVEL_SIZES = (3, 4, 3, 3, 4)
LEVELS = tuple(level for level, size in enumerate(LEVEL_SIZES, start=1) for _ in range(size))


@dataclass(frozen=True)
class Setting:
    """True accuracies of all 17 puzzles, the number of items, and their correlation.

    ``id_accuracy`` and ``ood_accuracy`` hold one number per puzzle, or one for all puzzles.
    ``num_items`` is the number of items per split (ID or OOD). ``correlation`` is the share of
    ID/OOD pairs whose two items use the same random draw.
    """

    name: str
    id_accuracy: float | Sequence[float]
    ood_accuracy: float | Sequence[float]
    num_items: int = 256
    correlation: float = 0.0

    def truths(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the true ID and OOD accuracies, one number per puzzle each."""
        shape = len(LEVELS)
        return np.resize(self.id_accuracy, shape), np.resize(self.ood_accuracy, shape)


_SPREAD = [float(share) for share in np.linspace(0.1, 0.9, len(LEVELS))]
SETTINGS = (
    *(Setting(f"no gap, {p}", p, p) for p in (0.02, 0.1, 0.5, 0.9, 0.98)),
    Setting("no gap, 0.5, 40 items", 0.5, 0.5, num_items=40),
    Setting("no gap, 0.5, pairs alike", 0.5, 0.5, correlation=0.6),
    Setting("no gap, 0.1 to 0.9", _SPREAD, _SPREAD),
    *(Setting(f"gap of {g}, from 0.6", 0.6, 0.6 - g) for g in (0.02, 0.045, 0.07, 0.1, 0.3)),
    *(Setting(f"gap of {g}, from 0.98", 0.98, 0.98 - g) for g in (0.02, 0.2)),
    Setting("gap of -0.05", 0.5, 0.55),
    Setting("gaps of 0 and 0.1", [0.6, 0.6], [0.6, 0.5]),
    Setting("gap of 0.1, pairs alike", 0.6, 0.5, correlation=0.6),
)  # fmt: skip


def simulate(
    connection: duckdb.DuckDBPyConnection, setting: Setting, num_models: int, seed: int
) -> None:
    """Replace all puzzle answers in a warehouse with answers of simulated models."""
    rng = np.random.default_rng(seed)
    shape = (num_models, len(LEVELS), setting.num_items)
    first = rng.random(shape)
    second = np.where(rng.random(shape) < setting.correlation, first, rng.random(shape))
    truths = setting.truths()
    right = {
        split: draws < truth[None, :, None]
        for split, draws, truth in zip(("id", "ood"), (first, second), truths, strict=True)
    }
    model, puzzle, item = (grid.ravel() for grid in np.indices(shape, dtype=np.int32))
    connection.execute("delete from internal.scylla_answers; delete from internal.scylla_cells")
    for split, each in right.items():
        rows = pa.table({"model": model, "puzzle": puzzle, "item": item, "right": each.ravel()})
        connection.register("rows", rows)
        connection.execute(
            """
            insert into internal.scylla_answers by name
            select model, puzzle, 'cot' as protocol, ? as split, item, status,
                status as lenient_status, status as paper_status
            from (select *, case when "right" then 'correct' else 'wrong' end as status from rows)
            """,
            [split],
        )
        connection.unregister("rows")
    connection.register("levels", pa.table({"puzzle": range(len(LEVELS)), "level": LEVELS}))
    connection.execute(
        f"""
        insert into internal.scylla_cells
        select model, 'r', puzzle, 'cot', 'complete', level, '', 0, 0, 0, 0, 0,
            {setting.num_items}, 0, null, '', [3, 4, 3, 3, 4]
        from range({num_models}) as m (model) cross join levels
        """
    )
    connection.unregister("levels")


def measure(connection: duckdb.DuckDBPyConnection, setting: Setting) -> Row:
    """Return the share of intervals that contain the true value, by figure."""
    id_truth, ood_truth = setting.truths()
    connection.register(
        "truths",
        pa.table({"puzzle": [str(n) for n in range(len(LEVELS))], "level": LEVELS,
                  "id": id_truth, "ood": ood_truth}),
    )  # fmt: skip
    try:
        cursor = connection.execute(_COVERAGE)
        names = [column[0] for column in cursor.description or []]
        [row] = cursor.fetchall()
    finally:
        connection.unregister("truths")
    return dict(zip(names, row, strict=True))


_COVERAGE = """
with means as (
    select level, avg(id - ood) as signed_gap, avg(ood - greatest(id - ood, 0)) as score
    from truths group by grouping sets ((level), ())
)
select
    (
        select avg((t.ood between accuracy_low and accuracy_high)::int)
        from internal.scylla_accuracy_details as a join truths as t using (puzzle)
        where a.split = 'ood' and a.rules = 'strict'
    ) as accuracy,
    (
        select avg((m.signed_gap between v.signed_gap_low and v.signed_gap_high)::int)
        from internal.scylla_valley as v join means as m using (level) where v.rules = 'strict'
    ) as signed_gap,
    (
        select avg((m.score between s.score_low and s.score_high)::int)
        from scylla_scores as s join means as m using (level)
        where s.rules = 'strict'
    ) as score,
    (
        select avg((m.score between s.score_low and s.score_high)::int)
        from scylla_scores as s cross join means as m
        where s.rules = 'strict' and s.level is null and m.level is null
    ) as score_of_all,
    (
        select avg((c.status = 'found')::int)
        from scylla_critical_complexity as c where c.rules = 'strict'
    ) as found,
    (
        select avg((c.joint_p_value < 0.05)::int)
        from scylla_critical_complexity as c where c.rules = 'strict'
    ) as jointly_significant
"""


def main() -> None:
    """Print a section for ``benchmarks/puzzle_statistics.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=400, help="simulated models a setting")
    num_models = parser.parse_args().models
    out = sys.stdout
    columns = ["accuracy", "signed_gap", "score", "score_of_all", "found", "jointly_significant"]
    started = time.monotonic()
    out.write(f"| {num_models} models | " + " | ".join(columns) + " |\n")
    out.write("|---|" + "--:|" * len(columns) + "\n")
    with duckdb.connect() as connection:
        create_objects(connection)
        for number, setting in enumerate(SETTINGS):
            simulate(connection, setting, num_models, number)
            row = measure(connection, setting)
            shown = (f"{100 * row[name]:.1f} %" for name in columns)
            out.write(f"| {setting.name} | " + " | ".join(shown) + " |\n")
            out.flush()
    out.write(f"\n{time.monotonic() - started:.0f} s.\n")


if __name__ == "__main__":
    main()
