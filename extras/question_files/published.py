"""Questions that others have published, in the file formats of ForecastBench and FreshBench.

ForecastBench: a question set (``2024-12-08-llm.json``) has ``forecast_due_date`` and ``questions``.
A resolution set (``2024-12-08_resolution_set.json``) has ``resolutions`` of questions, found by
``id`` and ``source``. Yes/no questions of prediction markets are kept (their ``resolution_dates``
is "N/A"). The market's price at ``freeze_datetime`` is the crowd's forecast. Questions on data
sets, on two events, and without a resolution are skipped (reasons ``dataset``, ``combination``,
``open``). A question in several sets is kept once, from the latest set. The date of resolution is a
day, stored as 00:00 UTC. A question with an outcome between 0 and 1 is void.
FreshBench (``gjo.json``, questions of Good Judgment Open): the file is one JSON list, or one object
per line. An entry has ``Question``, ``Description`` and ``Tags_list``. ``Started_time`` and
``Closed_time`` look like "Feb 09, 2024 06:00PM UTC"; later versions have the date only.
``Possible_Answers_dict`` has ``Correct?`` and ``Final Crowd Forecast`` ("86%") for each option. The
date of resolution is missing, so the closing date is used instead. A hash of title, opening time
and options is the id; repeated entries are kept once. A question is void if no answer or several
answers are right, or if repeated entries contradict each other.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.corpus.questions import CrowdForecast, Question
from core.errors import MalformedInput, UsageError
from core.json import JsonObject
from core.storage.regular import require_regular
from crawlers.apis.fields import Fields
from crawlers.contract import Drop, Repeat
from crawlers.imports.readers import regular_files, require_unicode
from crawlers.questions.contract import YES_NO, forecasts
from crawlers.web.times import read_time
from crawlers.web.values import load_json

MAX_FILE_BYTES = 256 * 2**20  # the largest published file has 20 MB
MAX_ENTRIES = 1_000_000  # per file
SUFFIXES = (".json", ".jsonl")


@dataclass(frozen=True)
class File:
    """A parsed JSON or JSON Lines file."""

    path: Path  # path as the user gave it, for error messages
    value: Any  # parsed JSON; for JSON Lines, a list of the lines' values

    def where(self, number: int) -> str:
        """Return file and number of an entry for error messages; ``number`` counts from 1."""
        return f"{self.path}: entry {number}"


@dataclass
class Published:
    """The questions read from files, and records of all other entries."""

    questions: dict[str, Question] = field(default_factory=dict)  # resolved or void, by id
    others: list[Drop | Repeat] = field(default_factory=list)  # dropped or repeated entries
    passed_over: Counter[str] = field(default_factory=Counter)  # skipped entries by reason


def read_files(path: Path) -> Iterator[File]:
    """Read a file, or all JSON files in a folder and its subfolders, in the order of paths.

    Raises:
        UsageError: ``path`` does not exist, or the folder has no file with a suffix of SUFFIXES.
        MalformedInput: a file is too large, not UTF-8 or not JSON.
    """
    if not path.exists():
        raise UsageError(f"there is no {path}")
    names = [path / name for name in regular_files(path)] if path.is_dir() else [path]
    chosen = [name for name in names if name.suffix in SUFFIXES or not path.is_dir()]
    if not chosen:
        raise UsageError(f"{path} has no file that ends in {' or '.join(SUFFIXES)}")
    for name in chosen:
        yield File(name, _read(name))


def _read(path: Path) -> Any:
    """Return the value of a JSON file, or of one with a value on each line."""
    require_regular(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)  # a device may have no size and no end
        if len(raw) > MAX_FILE_BYTES:
            raise MalformedInput(
                f"{path} is too large: at most {MAX_FILE_BYTES:,} bytes are read; split it"
            )
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    except UnicodeDecodeError as error:
        raise MalformedInput(f"{path} is not UTF-8 at byte {error.start}") from error
    try:
        return _parse(text)
    except ValueError as whole:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2:
            raise MalformedInput(f"{path} is no JSON: {whole}") from whole
        return [_line(f"{path}: line {number}", line) for number, line in lines]


def _line(where: str, line: str) -> Any:
    try:
        return _parse(line)
    except ValueError as error:
        raise MalformedInput(f"{where} is no JSON: {error}") from error


def _parse(text: str) -> Any:
    load_json(text)  # raises ValueError if it is nested too deeply
    return json.loads(text)  # with numbers and surrogates as they are, which are refused below


def entries(value: object, where: str) -> list[JsonObject]:
    """Return ``value`` if it is a list of objects; else raise MalformedInput."""
    if not isinstance(value, list):
        raise MalformedInput(f"{where}: expected a list of entries, got {value!r:.80}")
    if len(value) > MAX_ENTRIES:
        raise MalformedInput(f"{where}: {len(value):,} entries; at most {MAX_ENTRIES:,} are read")
    for place, entry in enumerate(value, 1):
        if not isinstance(entry, dict):
            raise MalformedInput(f"{where}: entry {place} is {entry!r:.80}; expected an object")
    return value


def required(entry: JsonObject, key: str, where: str) -> str:
    """Return the text of a field; raise MalformedInput if it is missing or not a text."""
    found = entry.get(key)
    if not isinstance(found, str) or not found.strip():
        raise MalformedInput(f"{where}: {key!r} is {found!r:.80}; expected a text")
    return require_unicode(found, f"{where}: {key!r}")


def optional(entry: JsonObject, key: str, where: str) -> str | None:
    """Return the text of a field, None if it is missing, null, empty or ``N/A``."""
    found = entry.get(key)
    if found in (None, "", "N/A"):
        return None
    return required(entry, key, where)


FORECASTBENCH_LICENCE = "CC-BY-SA-4.0"

Key = tuple[str, str]  # source and id of a question


def is_forecastbench(file: File) -> bool:
    """Return True if a file is a question set or a resolution set of ForecastBench."""
    value = file.value
    return isinstance(value, dict) and ("questions" in value or "resolutions" in value)


def read_forecastbench(files: Sequence[File], source: str, into: Published) -> None:
    """Add the questions of all question sets to ``into``, with answers of the resolution sets."""
    resolutions = _resolutions([file for file in files if "resolutions" in file.value])
    sets = [file for file in files if "questions" in file.value]
    if not sets or not resolutions:
        lack = "resolution set (2024-12-08_resolution_set.json)"
        raise MalformedInput(
            f"{files[0].path}: there is no {lack if sets else 'question set'} with it; expected "
            "both: give the folder that holds them"
        )
    for file in sorted(sets, key=_due):
        for place, entry in enumerate(entries(file.value["questions"], str(file.path)), 1):
            _add(entry, resolutions, source, file.where(place), into)


def _due(file: File) -> str:
    return required(file.value, "forecast_due_date", str(file.path))


def _resolutions(files: Sequence[File]) -> dict[Key, list[tuple[dt.datetime, float]]]:
    """Return the dates and outcomes of each question that is resolved."""
    found: dict[Key, list[tuple[dt.datetime, float]]] = defaultdict(list)
    for file in files:
        for place, entry in enumerate(entries(file.value["resolutions"], str(file.path)), 1):
            where = file.where(place)
            if not isinstance(entry.get("id"), str):
                continue  # a list of ids marks a question on two events
            if not isinstance(entry.get("resolved"), bool):
                raise MalformedInput(
                    f"{where}: 'resolved' is {entry.get('resolved')!r:.80}; expected true or false"
                )
            if entry["resolved"]:
                outcome = Fields(where, entry).number("resolved_to")
                resolved_at = _day(entry, "resolution_date", where)
                found[_key(entry, where)].append(
                    (resolved_at, math.nan if outcome is None else outcome)
                )
    return {key: sorted(each) for key, each in found.items()}


def _key(entry: JsonObject, where: str) -> Key:
    return required(entry, "source", where), required(entry, "id", where)


def _day(entry: JsonObject, key: str, where: str) -> dt.datetime:
    found = read_time(required(entry, key, where), dt.UTC)
    if found is None:
        raise MalformedInput(f"{where}: {key!r} is {entry[key]!r:.80}; expected such as 2024-12-08")
    return found


def _optional_day(entry: JsonObject, key: str, where: str) -> dt.datetime | None:
    return None if optional(entry, key, where) is None else _day(entry, key, where)


def _add(
    entry: JsonObject,
    resolutions: dict[Key, list[tuple[dt.datetime, float]]],
    source: str,
    where: str,
    into: Published,
) -> None:
    """Add an entry's question to ``into``, or count why it is passed over."""
    if not isinstance(entry.get("id"), str) or entry.get("combination_of", "N/A") != "N/A":
        into.passed_over["combination"] += 1
        return
    if entry.get("resolution_dates", "N/A") != "N/A":
        into.passed_over["dataset"] += 1
        return
    outcomes = resolutions.get(_key(entry, where))
    if not outcomes:
        into.passed_over["open"] += 1
        return
    found = _forecastbench_question(entry, outcomes, source, where)
    if isinstance(found, Drop):
        into.others.append(found)
        return
    if found.question_id in into.questions:  # sets are sorted by date; the latest set counts
        into.others.append(Repeat(found.question_id, f"{where} replaces a former set's"))
    into.questions[found.question_id] = found


def _forecastbench_question(
    entry: JsonObject, outcomes: list[tuple[dt.datetime, float]], source: str, where: str
) -> Question | Drop:
    """Return an entry of ForecastBench as a question; void if outcomes differ."""
    market, name = _key(entry, where)
    resolved_at, outcome = outcomes[0]
    opened_at = _optional_day(entry, "market_info_open_datetime", where)
    if opened_at is None:
        return Drop(f"{market}/{name}", "no_date", f"{where}: no market_info_open_datetime")
    is_clear = outcome in (0.0, 1.0) and all(each == outcome for _, each in outcomes)
    return Question(
        question_id=f"{market}/{name}",
        source=source,
        url=optional(entry, "url", where),
        title=required(entry, "question", where),
        background=optional(entry, "background", where),
        resolution_criteria=optional(entry, "market_info_resolution_criteria", where),
        options=YES_NO,
        answer_index=int(outcome == 0.0) if is_clear else None,
        opened_at=opened_at,
        closed_at=_optional_day(entry, "market_info_close_datetime", where),
        resolved_at=max(resolved_at, opened_at),
        status="resolved" if is_clear else "void",
        tags=(market,),
        crowd_forecast=_value_when_frozen(entry, resolved_at, where),
        licence=FORECASTBENCH_LICENCE,
    )


def _value_when_frozen(
    entry: JsonObject, resolved_at: dt.datetime, where: str
) -> tuple[CrowdForecast, ...]:
    """Return the crowd's forecast when the set was made; none if that was too late."""
    value = Fields(where, entry).number("freeze_datetime_value")
    at = _optional_day(entry, "freeze_datetime", where)
    if value is None or not 0 <= value <= 1 or at is None or at >= resolved_at:
        return ()
    return forecasts(YES_NO, (value, 1 - value), at)


FRESHBENCH_LICENCE = "LicenseRef-unknown"
_PERCENT = re.compile(r"\s*<?\s*(\d{1,3}(?:\.\d+)?)\s*%\s*")


def is_freshbench(file: File) -> bool:
    """Return True if a file has the format of FreshBench, judged by its first entry."""
    value = file.value[:1] if isinstance(file.value, list) else [file.value]
    return any(isinstance(each, dict) and "Possible_Answers_dict" in each for each in value)


def read_freshbench(file: File, source: str, into: Published) -> None:
    """Add a FreshBench file's questions to ``into``; raise MalformedInput if an entry is wrong."""
    value = file.value if isinstance(file.value, list) else [file.value]
    for place, entry in enumerate(entries(value, str(file.path)), 1):
        question = _freshbench_question(entry, source, file.where(place))
        former = into.questions.setdefault(question.question_id, question)
        if former is question:
            continue
        into.others.append(Repeat(question.question_id, f"{file.where(place)} is there before"))
        if former.answer_index != question.answer_index:
            void = dataclasses.replace(former, answer_index=None, status="void")
            into.questions[question.question_id] = void


def _freshbench_question(entry: JsonObject, source: str, where: str) -> Question:
    """Return an entry of FreshBench as a question; void unless one answer is right."""
    title = required(entry, "Question", where)
    opened_at, closed_at = (_instant(entry, key, where) for key in ("Started_time", "Closed_time"))
    answers = _answers(entry, where)
    options = tuple(answers)
    right = [place for place, found in enumerate(answers.values()) if found["Correct?"]]
    key = "\n".join((title, opened_at.isoformat(), *options))
    return Question(
        question_id=hashlib.sha256(key.encode()).hexdigest()[:16],
        source=source,
        title=title,
        background=optional(entry, "Description", where),
        options=options,
        answer_index=right[0] if len(right) == 1 else None,
        opened_at=opened_at,
        closed_at=closed_at,
        resolved_at=closed_at,
        status="resolved" if len(right) == 1 else "void",
        tags=_tags(entry, where),
        crowd_forecast=_crowd_percents(answers, closed_at),
        licence=FRESHBENCH_LICENCE,
    )


def _instant(entry: JsonObject, key: str, where: str) -> dt.datetime:
    """Return the time in a field; raise an error if it is none."""
    written = required(entry, key, where).strip()
    moment = read_time(written, dt.UTC)
    if moment is None:
        raise MalformedInput(
            f"{where}: {key!r} is {written!r:.80}; expected 'Feb 09, 2024 06:00PM UTC' or "
            "'2024-02-09'"
        )
    return moment


def _answers(entry: JsonObject, where: str) -> dict[str, JsonObject]:
    """Return the answers of an entry by option; raise an error if one lacks 'Correct?'."""
    found = entry.get("Possible_Answers_dict")
    if not isinstance(found, dict):
        raise MalformedInput(
            f"{where}: 'Possible_Answers_dict' is {found!r:.80}; expected an object by option"
        )
    for option, told in found.items():
        require_unicode(option, f"{where}: an option")
        if not isinstance(told, dict) or not isinstance(told.get("Correct?"), bool):
            raise MalformedInput(
                f"{where}: the option {option!r:.80} has {told!r:.80}; expected 'Correct?' with "
                "true or false"
            )
    return found


def _tags(entry: JsonObject, where: str) -> tuple[str, ...]:
    tags = entry.get("Tags_list") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise MalformedInput(f"{where}: 'Tags_list' is {tags!r:.80}; expected a list of texts")
    return tuple(require_unicode(tag, f"{where}: a tag") for tag in tags)


def _crowd_percents(
    answers: Mapping[str, JsonObject], closed_at: dt.datetime
) -> tuple[CrowdForecast, ...]:
    """Return the crowd's shares; none if one of them cannot be read."""
    found = []
    for option, told in answers.items():
        match = _PERCENT.fullmatch(str(told.get("Final Crowd Forecast")))
        if match is None or float(match[1]) > 100:
            return ()
        found.append(CrowdForecast(option, float(match[1]) / 100, closed_at))
    return tuple(found)
