"""Import of published questions from a user's files, sealed by month of resolution."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from core.corpus.questions import (
    Question,
    QuestionSeal,
    read_question_seal,
    read_questions,
    seal_questions,
)
from core.errors import EmptyPartition, MalformedInput, PartitionSealed, UsageError
from core.month import Month
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.crawling import manifest
from crawlers.questions.contract import list_question_sources
from crawlers.questions.crawl import tidy
from extras.question_files.published import (
    File,
    Published,
    is_forecastbench,
    is_freshbench,
    read_files,
    read_forecastbench,
    read_freshbench,
)

_log = logging.getLogger(__name__)


def import_questions(
    path: Path, source: str, store: Store, replace: bool = False
) -> list[QuestionSeal]:
    """Seal the questions of published files, each in the month of its resolution.

    The format is detected from the contents: FreshBench's ``gjo.json``, or ForecastBench's question
    sets with their resolution sets (``published.py``). Nothing is written unless all files are
    well-formed. Questions that are unresolved, or of a month that is not over, are skipped.
    ``path`` is a file, or a folder with all questions of the months. With ``replace``, a month
    sealed with different questions gets a new version. If the same questions are sealed already,
    the earlier seal is returned.

    Raises:
        UsageError: ``path`` does not exist, or ``source`` is empty or the name of a crawler.
        MalformedInput: a file has an unknown format; the error names file, entry, expected form.
        EmptyPartition: no question is resolved in a past month; nothing is sealed.
        PartitionSealed: a month is sealed with different questions; ``replace`` is not set.
    """
    if not source.strip() or source in list_question_sources():
        raise UsageError(
            f"{source!r} cannot be the name of imported questions: it is empty, or that of a "
            "crawler; say --source NAME, such as freshbench"
        )
    started_at = manifest.now()
    files = list(read_files(path))
    published = _read(path, files, source)
    months = _by_month(published)
    if not months:
        raise EmptyPartition(
            f"{path}: it has no question that was resolved in a complete month "
            f"({len(published.others)} left out, {dict(published.passed_over)} ignored)"
        )
    describe = {
        "kind": "import",
        "code_version": manifest.code_version(),
        "files": [file.path.name for file in files],
        "started_at": started_at,
        "status": "complete",
        "passed_over": dict(published.passed_over.most_common()),
        "num_left_out": len(published.others),
        "left_out": dict(_reasons(published)),
    }
    unused = {**_reasons(published), **published.passed_over}
    firsts = _first_of_each_reason(published)
    counts = ", ".join(f"{n} {why}{firsts.get(why, '')}" for why, n in unused.items() if n)
    if counts:
        _log.warning("%s: questions that are not imported: %s", path, counts)
    is_there = {month: _is_sealed(store, source, month, each) for month, each in months.items()}
    clash = [month for month, same in is_there.items() if same is False]
    if clash and not replace:
        raise PartitionSealed(
            f"questions of {source} are sealed in {', '.join(map(str, clash))}, and those of "
            f"{path} differ; nothing was imported: use --replace, or another --source"
        )
    return [
        _seal(store, source, month, found, describe, is_there[month])
        for month, found in sorted(months.items())
    ]


def _read(path: Path, files: Sequence[File], source: str) -> Published:
    """Return the questions of files of FreshBench or ForecastBench."""
    into = Published()
    if all(map(is_freshbench, files)):
        for file in files:
            read_freshbench(file, source, into)
    elif all(map(is_forecastbench, files)):
        read_forecastbench(files, source, into)
    else:
        odd = [file for file in files if not is_freshbench(file) and not is_forecastbench(file)]
        raise MalformedInput(
            f"{odd[0].path if odd else path}: expected entries with 'Possible_Answers_dict' "
            "(FreshBench), or an object with 'questions' or 'resolutions' (ForecastBench), and one "
            "of the two kinds alone"
        )
    return into


def _first_of_each_reason(published: Published) -> dict[str, str]:
    """Return an example of each reason why questions are left out."""
    return {
        each.reason: f" (such as {each.native_id!r:.80}: {each.detail:.80})"
        for each in reversed(published.others)
        if isinstance(each, Drop)
    }


def _by_month(published: Published) -> dict[Month, list[Question]]:
    """Return the questions by the month of their resolution, without those not over."""
    months: dict[Month, list[Question]] = {}
    for question in published.questions.values():
        tidied = tidy(question)
        if isinstance(tidied, Drop) or tidied.resolved_at is None:
            undated = Drop(question.question_id, "no_date", "no date of resolution")
            published.others.append(tidied if isinstance(tidied, Drop) else undated)
            continue
        month = Month.of(tidied.resolved_at)
        if month > Month.last_complete():
            published.passed_over["month_not_over"] += 1
        else:
            months.setdefault(month, []).append(tidied)
    return {
        month: sorted(found, key=lambda question: question.question_id)
        for month, found in months.items()
    }


def _reasons(published: Published) -> dict[str, int]:
    ledger = manifest.Ledger("an import")
    for other in published.others:
        ledger.pass_over(other)
    return {**ledger.count(Drop), "repeated": ledger.num_repeated}


def _is_sealed(
    store: Store, source: str, month: Month, questions: Sequence[Question]
) -> bool | None:
    """Return True if a month is sealed with the same questions, None if not sealed, else False."""
    seal = read_question_seal(store, source, month)
    return None if seal is None else read_questions(store, seal) == list(questions)


def _seal(
    store: Store,
    source: str,
    month: Month,
    questions: Sequence[Question],
    describe: dict[str, object],
    is_there: bool | None,
) -> QuestionSeal:
    """Seal a month's questions; return the former seal if it ``is_there`` already."""
    former = read_question_seal(store, source, month)
    if is_there and former is not None:
        return former
    window = {"start": month.start.isoformat(), "end": month.end.isoformat()}
    counts = {"ended_at": manifest.now(), "window": window, "kept": len(questions)}
    return seal_questions(store, source, month, questions, {**describe, **counts})
