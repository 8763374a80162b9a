"""Fit the panels of a large world in two processes: Python alone uses one core.

Panels do not depend on each other, so the rows are the same in one process. The second process is
a command, not ``multiprocessing``, which would run a user's script again. It reads panels from its
standard input, one after the other, and answers each with its rows. Both processes take the next
panel as soon as they are free.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, cast

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.errors import TidemarkError
from warehouse.estimates.panel_rows import PanelInput, TableRow

MIN_FIGURES = 20_000  # fewer are fitted faster than a process starts
_COMMAND = f"import sys; sys.path[:] = sys.argv[1:]; import {__name__} as this; this.main()"

Rows = list[TableRow]
Places = queue.SimpleQueue[int]


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
    places: Places = queue.SimpleQueue()
    for place in range(len(inputs)):
        places.put(place)
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(fit_elsewhere, inputs, places)
        try:
            found = {place: inputs[place].rows() for place in _taken(places)}
        finally:
            for _ in _taken(places):  # after a fault, the second process is to end, too
                pass
        found |= elsewhere.result()
    return [found[place] for place in range(len(inputs))]


def _taken(places: Places) -> Iterator[int]:
    """Take the next panel's place until none is left."""
    while True:
        try:
            yield places.get_nowait()
        except queue.Empty:
            return


def fit_elsewhere(inputs: Sequence[PanelInput], places: Places) -> dict[int, Rows]:
    """Let a second process fit panels until no place is left; return their rows by place.

    Raises:
        TidemarkError: as in ``fit_in_two_processes``.
    """
    found = {}
    command = [sys.executable, "-c", _COMMAND, *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        stdin = cast("IO[bytes]", process.stdin)
        stdout = cast("IO[bytes]", process.stdout)
        try:
            for place in _taken(places):
                pickle.dump(inputs[place], stdin)
                stdin.flush()
                found[place] = pickle.load(stdout)  # noqa: S301 - of this code
        except (EOFError, BrokenPipeError) as error:
            raise TidemarkError(
                "the process that fits panels ended, as it does when the memory is full; free "
                "some, then publish again"
            ) from error
    return found


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def main() -> None:
    """Read panels from standard input, and write the rows of each to standard output."""
    while True:
        try:
            panel: PanelInput = pickle.load(sys.stdin.buffer)  # noqa: S301 - of this code
        except EOFError:
            return
        pickle.dump(panel.rows(), sys.stdout.buffer)
        sys.stdout.buffer.flush()
