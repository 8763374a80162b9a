"""Fit the panels of a large warehouse in two processes, because one Python process uses one core.

Panels do not depend on each other, so the rows are the same in one process. The second process is
a command, not ``multiprocessing``, which would run a user's script again. It reads its panels from
its standard input, and answers with their rows.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, cast

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.errors import TidemarkError
from warehouse.estimates.panel_rows import PanelInput, TableRow

MIN_FIGURES = 20_000  # fewer are fitted faster than a process starts
_COMMAND = f"import sys; sys.path[:] = sys.argv[1:]; import {__name__} as this; this.main()"

Rows = list[TableRow]


def fit_all(inputs: Sequence[PanelInput]) -> list[Rows]:
    """Return the rows of each panel, in the order of ``inputs``."""
    num_figures = sum(each.num_figures for each in inputs)
    if len(inputs) < 2 or num_figures < MIN_FIGURES or os.cpu_count() == 1:
        return [each.rows() for each in inputs]
    return fit_in_two_processes(inputs)


def fit_in_two_processes(inputs: Sequence[PanelInput]) -> list[Rows]:
    """Return the rows of each panel, as ``fit_all`` does.

    Raises:
        TidemarkError: the second process ended, as it does when the memory is full.
    """
    by_size = sorted(range(len(inputs)), key=lambda place: inputs[place].num_figures)
    own = by_size[::2]
    others = by_size[1::2]
    command = [sys.executable, "-c", _COMMAND, *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        stdin = cast("IO[bytes]", process.stdin)
        stdout = cast("IO[bytes]", process.stdout)
        try:
            with stdin:
                pickle.dump([inputs[place] for place in others], stdin)
            found = {place: inputs[place].rows() for place in own}
            answer: list[Rows] = pickle.load(stdout)  # noqa: S301 - of this code
        except (EOFError, BrokenPipeError) as error:
            raise TidemarkError(
                "the process that fits panels ended, as it does when the memory is full; free "
                "some, then publish again"
            ) from error
        finally:
            process.kill()  # after a fault, it is to end, too
    found |= dict(zip(others, answer, strict=True))
    return [found[place] for place in range(len(inputs))]


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def main() -> None:
    """Read panels from standard input, and write the rows of each to standard output."""
    panels: list[PanelInput] = pickle.load(sys.stdin.buffer)  # noqa: S301 - of this code
    pickle.dump([panel.rows() for panel in panels], sys.stdout.buffer)
