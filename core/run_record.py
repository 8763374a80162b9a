"""Run records: files with the request of a run and the outcomes of its parts.

    runs/<run>/request.json            the request
    runs/<run>/crawl/<source>.json     the outcome of a source's months
    runs/<run>/score/<model>.json      the outcome of a model's cells
    runs/<run>/restart-<number>.json   the time of a restart after a crash
    runs/<run>/result.json             the outcome of the run

A part is the crawl of one source, or the work of one model: scoring, answering questions, solving
puzzles. Several processes on several machines do the parts. These files, not the states in an
orchestrator, tell which parts have ended.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from core.errors import MalformedInput
from core.month import Period
from core.periods import parse_period
from core.progress import counted
from core.storage.records import Record, read_record
from core.storage.store import Store, name_of_part, path_part

Stage = Literal["crawl", "score", "answer", "solve"]
_log = logging.getLogger(__name__)


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunRequest(_Facts):
    """The request of a run."""

    run: str  # name of the run and of its folder
    started_at: AwareDatetime  # UTC
    months: tuple[str, ...]  # months as YYYY-MM, or other periods, in order of time
    sources: tuple[str, ...]
    models: tuple[str, ...]  # catalogue names, folders or controls (compressors)
    protocol: str
    options: dict[str, Any] = {}  # options that differ from the worker's settings, by name
    stages: tuple[Stage, ...] = ("crawl", "score")
    parameters: dict[str, Any] = {}  # of the flow runs that ask models (stages answer and solve)

    def window(self) -> list[Period]:
        """Return the months to crawl and score."""
        return list(map(parse_period, self.months))

    def parts(self, stage: Stage) -> tuple[str, ...]:
        """Return the names of the parts of a stage: sources to crawl, or the run's models."""
        if stage not in self.stages:
            return ()
        return self.sources if stage == "crawl" else self.models


class Outcome(_Facts):
    """The outcome of one part of a run: of one source, or of one model."""

    done: int  # number of sealed partitions (source) or landed cells (model)
    items: int = 0  # number of answered questions or puzzle items
    holes: tuple[str, ...] = ()  # missing partitions or cells, each with the reason
    partial: tuple[str, ...] = ()  # sealed partitions that lack items, with the reason

    def __str__(self) -> str:
        partial = f", {len(self.partial)} of them partial" if self.partial else ""
        return f"{counted(self.done, 'month')} sealed{partial}"


class RunResult(_Facts):
    """The outcome of a run; ``holes`` and ``partial`` unite the lists of all parts."""

    ended_at: AwareDatetime  # UTC
    report: str  # URL of the report page; empty if no page was written
    partitions: int  # number of sealed partitions
    cells: int  # number of landed cells
    holes: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()


class RunRecord:
    """The files of one run. Methods raise StorageError, or MalformedInput for malformed files."""

    def __init__(self, store: Store, run: str) -> None:
        self.run = run
        self._store = store
        self._folder = f"runs/{path_part(run)}"

    def begin(self, request: RunRequest) -> RunRequest:
        """Store the request of a new run, and return it; a resumed run keeps its first request."""
        with self._store.alone(self._folder):
            path = f"{self._folder}/request.json"
            self._store.create_bytes(path, request.model_dump_json().encode())
        return self.request()

    def count_restart(self) -> int:
        """Record that a crashed run is restarted now; return the number of restarts so far."""
        with self._store.alone(self._folder):
            number = len(self._store.list(f"{self._folder}/restart-*.json")) + 1
            now = f'"{dt.datetime.now(dt.UTC).isoformat()}"'
            self._store.create_bytes(f"{self._folder}/restart-{number}.json", now.encode())
        return number

    def exists(self) -> bool:
        """Return True if the run has begun."""
        return self._store.exists(f"{self._folder}/request.json")

    def request(self) -> RunRequest:
        """Return the request of the run; raise StorageError if the run does not exist."""
        return _parse(RunRequest, self._store, f"{self._folder}/request.json")

    def settle(self, stage: Stage, part: str, outcome: Outcome) -> None:
        """Store the outcome of a part; if it is done a second time, replace the first outcome."""
        path = f"{self._folder}/{stage}/{path_part(part)}.json"
        self._store.write_bytes(path, outcome.model_dump_json().encode())

    def outcomes(self, stage: Stage) -> dict[str, Outcome]:
        """Return the outcomes of the ended parts of a stage, by name."""
        ended = self._list_ended(stage)
        return {part: _parse(Outcome, self._store, path) for part, path in ended.items()}

    def missing(self, stage: Stage) -> list[str]:
        """Return the names of the parts that have not ended, in the order of the request."""
        ended = set(self._list_ended(stage))  # reads only file names, as callers poll this method
        return [part for part in self.request().parts(stage) if part not in ended]

    def _list_ended(self, stage: Stage) -> dict[str, str]:
        paths = self._store.list(f"{self._folder}/{stage}/*.json")
        return {name_of_part(PurePosixPath(path).stem): path for path in paths}

    def finish(self, report: str, holes: Sequence[str] = ()) -> RunResult:
        """Sum up the outcomes of all parts, and store the result of the run.

        Each part that has not ended becomes a hole (missing work). ``holes`` are additional holes.
        """
        stages = self.request().stages
        by_stage = {stage: list(self.outcomes(stage).values()) for stage in stages}
        crawled, outcomes = by_stage.get("crawl", []), sum(by_stage.values(), [])
        unfinished = [
            f"{stage} {part}: has not ended" for stage in stages for part in self.missing(stage)
        ]
        result = RunResult(
            ended_at=dt.datetime.now(dt.UTC),
            report=report,
            partitions=sum(each.done for each in crawled),
            cells=sum(each.done for each in outcomes) - sum(each.done for each in crawled),
            holes=(*(hole for each in outcomes for hole in each.holes), *unfinished, *holes),
            partial=tuple(partition for each in outcomes for partition in each.partial),
        )
        path = f"{self._folder}/result.json"
        self._store.write_bytes(path, result.model_dump_json().encode())
        return result

    def result(self) -> RunResult | None:
        """Return the result of the run, or None if the run has not ended."""
        path = f"{self._folder}/result.json"
        return _parse(RunResult, self._store, path) if self._store.exists(path) else None


def list_runs(store: Store) -> list[RunRecord]:
    """Return the records of all runs, the newest first; log and skip damaged records."""
    began: list[tuple[dt.datetime, RunRecord]] = []
    for path in store.list("runs/*/request.json"):
        record = RunRecord(store, name_of_part(PurePosixPath(path).parent.name))
        try:
            began.append((record.request().started_at, record))
        except MalformedInput as error:
            _log.warning("passed over: %s", error)
    return [record for _, record in sorted(began, key=lambda each: each[0], reverse=True)]


def _parse(kind: type[Record], store: Store, path: str) -> Record:
    remedy = "delete the folder and start the run again: what is crawled and scored stays"
    return read_record(kind, store, path, "a record of a run", remedy, MalformedInput)
