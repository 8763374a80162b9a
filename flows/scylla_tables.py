"""What `tidemark scylla show` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import StorageError, UnknownName, UsageError
from core.settings import Settings
from core.storage import Store
from flows.console import out, print_table, visible
from models.catalogue import find_model
from scylla.registry import load_puzzle
from warehouse.query import query

_SCORES = """
    select s.model, s.protocol, s.level, s.score, s.score_low, s.score_high, s.num_puzzles,
        s.num_expected, s.num_insufficient, c.critical_level, c.status
    from scylla_scores as s
    inner join scylla_critical_complexity as c using (model, protocol, ood_split, rules)
    where s.rules = 'strict' and s.ood_split = 'ood'
        and ($models::varchar[] is null or list_contains($models::varchar[], s.model))
    order by s.protocol, s.model, s.level nulls last
"""
_CELLS = """
    select model, puzzle, protocol, answer_cell, status, num_completions, num_id_examples
    from scylla_cells
    where ($models::varchar[] is null or list_contains($models::varchar[], model))
        and list_contains($puzzles::varchar[], puzzle)
    order by all
"""
_PUBLISHED = "select distinct model from scylla_cells order by model"
_NUM_SHOWN = 2  # items of a split


def print_scores(settings: Settings, models: Sequence[str] | None) -> None:
    """Print scores by level, and the critical one.

    Raises:
        UsageError: there is nothing of these models.
    """
    given = _names(models, settings)
    rows = query(settings, _SCORES, {"models": given}).to_pylist()
    if not rows:
        raise _nothing(settings, given)
    by_model: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_model.setdefault((row["model"], row["protocol"]), []).append(row)
    print_table(
        "score by level of complexity: share solved out of distribution, less the gap",
        ("model", "asked", "1", "2", "3", "4", "5", "all", "95 % interval", "critical", "puzzles"),
        [[name, protocol, *_line(own)] for (name, protocol), own in by_model.items()],
    )


def _line(rows: Sequence[dict[str, Any]]) -> list[str]:
    overall = rows[-1]
    interval = "–"
    if overall["score_low"] is not None:
        interval = f"{overall['score_low']:+.2f} to {overall['score_high']:+.2f}"
    lacking = overall["num_insufficient"]
    return [
        *("–" if row["score"] is None else f"{row['score']:+.2f}" for row in rows),
        interval,
        str(overall["critical_level"] or overall["status"]),
        f"{overall['num_puzzles']} of {overall['num_expected']}"
        + (f"; {lacking}: too few inputs" if lacking else ""),
    ]


def print_items(settings: Settings, models: Sequence[str] | None, puzzles: Sequence[str]) -> None:
    """Print some items of puzzles: what was asked, what was written, and the verdict.

    Raises:
        UnknownName: there is no such puzzle.
        UsageError: there is nothing of these models and puzzles.
        StorageError: a file of answers cannot be read.
    """
    names = _names(models, settings)
    given = {"models": names, "puzzles": [load_puzzle(puzzle).name for puzzle in puzzles]}
    cells = query(settings, _CELLS, given).to_pylist()
    if not cells:
        raise _nothing(settings, names, puzzles)
    store = Store(settings.home)
    for cell in cells:
        out.print(
            visible(f"{cell['model']} on {cell['puzzle']} ({cell['protocol']})"),
            style="bold",
            markup=False,
        )
        if cell["status"] != "complete":
            examples, texts = cell["num_id_examples"], cell["num_completions"]
            out.print(f"insufficient ID data: {examples} inputs in {texts} texts\n")
            continue
        for row in _rows(store, cell["answer_cell"]):
            if row["item"] < _NUM_SHOWN:
                _print_item(row)


def _rows(store: Store, path: str) -> list[dict[str, Any]]:
    try:
        with store.open(path) as file:
            rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise StorageError(
            f"{store.url(path)} cannot be read ({error}); delete it and the .json beside it, and "
            "run `tidemark scylla run` again"
        ) from error
    return rows


def _print_item(row: dict[str, Any]) -> None:
    lines = [
        f"{row['split']} {row['item']}: {row['status']}",
        *row["input"].splitlines(),
        "->",
        *(row["response"].strip() or row["reason"] or "(nothing)").splitlines(),
    ]
    out.print("\n    ".join(map(visible, lines)) + "\n", markup=False, highlight=False)


def _names(models: Sequence[str] | None, settings: Settings) -> list[str] | None:
    """Return the names under which models landed; what the catalogue lacks may have, too."""
    names = []
    for model in models or ():
        try:
            names.append(find_model(model, settings).name)
        except UnknownName:
            names.append(model)
    return names or None


def _nothing(
    settings: Settings, models: Sequence[str] | None, puzzles: Sequence[str] = ()
) -> UsageError:
    published = query(settings, _PUBLISHED)["model"].to_pylist()
    asked = " on ".join(", ".join(map(repr, each)) for each in (models or (), puzzles) if each)
    return UsageError(
        f"nothing of {asked or 'any model'} is published; published are: "
        f"{', '.join(published) or 'none'}; have models solve puzzles with `tidemark scylla run`"
    )
