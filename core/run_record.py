"""Run records: what a run was asked for, and how its parts ended, as files under the data root.

    runs/<run>/request.json            what was asked for
    runs/<run>/crawl/<source>.json     how the months of a source ended
    runs/<run>/score/<model>.json      how the cells of a model ended
    runs/<run>/crawl.json, score.json  that every part of the stage has ended
    runs/<run>/result.json             how the run ended

The parts of a run are done by several processes, on several machines, which may be killed. What
these files say holds, whatever an orchestrator remembers.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from core.errors import MalformedInput
from core.month import Month
from core.storage import Store, name_of_part, path_part

Stage = Literal["crawl", "score"]
_log = logging.getLogger(__name__)


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunRequest(_Facts):
    """What a run was asked for.

    Attributes:
        run: its name, which is that of its folder.
        started_at: UTC.
        months: YYYY-MM, in order.
        sources: their names.
        models: catalogue names, folders or controls.
        protocol: name of the protocol.
    """

    run: str
    started_at: AwareDatetime
    months: tuple[str, ...]
    sources: tuple[str, ...]
    models: tuple[str, ...]
    protocol: str

    def window(self) -> list[Month]:
        """Return the months."""
        return [Month(month) for month in self.months]

    def parts(self, stage: Stage) -> tuple[str, ...]:
        """Return what a stage has to do: the sources to crawl, or the models to score."""
        return self.sources if stage == "crawl" else self.models


class Outcome(_Facts):
    """How a part of a run ended.

    Attributes:
        done: partitions that are sealed, or cells that have landed.
        holes: what is missing, and why.
        partial: partitions that are sealed but lack items, and which.
    """

    done: int
    holes: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()


class RunResult(_Facts):
    """How a run ended.

    Attributes:
        ended_at: UTC.
        report: address of the page; empty where nothing was published.
        partitions: how many are sealed.
        cells: how many landed.
        holes: what is missing, and why; empty for a complete run.
        partial: partitions that lack items.
    """

    ended_at: AwareDatetime
    report: str
    partitions: int
    cells: int
    holes: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()


_Record = TypeVar("_Record", bound=_Facts)


class RunRecord:
    """The files of one run. Methods raise StorageError, and MalformedInput for files of others.

    Args:
        store: the data root.
        run: name of the run; any text.
    """

    def __init__(self, store: Store, run: str) -> None:
        self.run = run
        self._store = store
        self._folder = f"runs/{path_part(run)}"

    def begin(self, request: RunRequest) -> RunRequest:
        """Keep the request of a run that begins; a run that goes on keeps its first one."""
        with self._store.alone(self._folder):
            path = f"{self._folder}/request.json"
            self._store.create_bytes(path, request.model_dump_json().encode())
        return self.request()

    def exists(self) -> bool:
        """Whether the run has begun."""
        return self._store.exists(f"{self._folder}/request.json")

    def request(self) -> RunRequest:
        """Return what was asked for.

        Raises:
            StorageError: there is no such run.
        """
        path = f"{self._folder}/request.json"
        return _parse(RunRequest, self._store, path)

    def settle(self, stage: Stage, part: str, outcome: Outcome) -> None:
        """Keep how a part ended; one that is done again takes the place of its former outcome."""
        path = f"{self._folder}/{stage}/{path_part(part)}.json"
        self._store.write_bytes(path, outcome.model_dump_json().encode())

    def outcomes(self, stage: Stage) -> dict[str, Outcome]:
        """Return how the parts ended that have ended."""
        ended = self._list_ended(stage)
        return {part: _parse(Outcome, self._store, path) for part, path in ended.items()}

    def missing(self, stage: Stage) -> list[str]:
        """Return the parts that have not ended, in the order of the request."""
        ended = set(self._list_ended(stage))  # their names alone: a watcher asks all the time
        return [part for part in self.request().parts(stage) if part not in ended]

    def _list_ended(self, stage: Stage) -> dict[str, str]:
        paths = self._store.list(f"{self._folder}/{stage}/*.json")
        return {name_of_part(PurePosixPath(path).stem): path for path in paths}

    def complete(self, stage: Stage) -> bool:
        """Note that a stage has ended, if it has; True for one caller alone, whoever else calls."""
        if self.missing(stage):
            return False
        moment = dt.datetime.now(dt.UTC).isoformat()
        with self._store.alone(self._folder):
            return self._store.create_bytes(f"{self._folder}/{stage}.json", f'"{moment}"'.encode())

    def finish(self, report: str, holes: Sequence[str] = ()) -> RunResult:
        """Keep how the run ended: the sum of its parts. Parts without an outcome are holes.

        Args:
            report: address of the page; empty where there is none.
            holes: what is missing beside what the parts lack, and why.
        """
        parts = [(stage, self.outcomes(stage), self.missing(stage)) for stage in ("crawl", "score")]
        unfinished = [
            f"{stage} {part}: has not ended" for stage, _, missing in parts for part in missing
        ]
        (_, crawled, _), (_, scored, _) = parts
        outcomes = [*crawled.values(), *scored.values()]
        result = RunResult(
            ended_at=dt.datetime.now(dt.UTC),
            report=report,
            partitions=sum(each.done for each in crawled.values()),
            cells=sum(each.done for each in scored.values()),
            holes=(*(hole for each in outcomes for hole in each.holes), *unfinished, *holes),
            partial=tuple(partition for each in outcomes for partition in each.partial),
        )
        path = f"{self._folder}/result.json"
        self._store.write_bytes(path, result.model_dump_json().encode())
        return result

    def result(self) -> RunResult | None:
        """Return how the run ended, or None while it has not."""
        path = f"{self._folder}/result.json"
        return _parse(RunResult, self._store, path) if self._store.exists(path) else None


def list_runs(store: Store) -> list[RunRecord]:
    """Return the runs of a data root, the newest first; damaged ones are named in the log."""
    began: list[tuple[dt.datetime, RunRecord]] = []
    for path in store.list("runs/*/request.json"):
        record = RunRecord(store, name_of_part(PurePosixPath(path).parent.name))
        try:
            began.append((record.request().started_at, record))
        except MalformedInput as error:
            _log.warning("passed over: %s", error)
    return [record for _, record in sorted(began, key=lambda each: each[0], reverse=True)]


def _parse(kind: type[_Record], store: Store, path: str) -> _Record:
    try:
        return kind.model_validate_json(store.read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise MalformedInput(
            f"{store.url(path)} is no record of a run: {field}: {first['msg']}; delete the folder "
            "and start the run again: what is crawled and scored stays"
        ) from error
