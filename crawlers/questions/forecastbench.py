"""ForecastBench's published question sets and resolution sets.

A question set (``2024-12-08-llm.json``) has ``forecast_due_date`` and ``questions``, a resolution
set (``2024-12-08_resolution_set.json``) has ``resolutions``, by ``id`` and ``source``. Taken are
the questions of markets, of which the whole outcome is asked (``resolution_dates`` is "N/A"): yes
or no, with the market's value when the set was frozen as the crowd's forecast. Questions on data
sets (``dataset``) and on two events at once (``combination``) are passed over, and so is what no
set says to be resolved (``open``).

A market that is in several sets counts once, with its latest value from before closing. A market
was resolved on a day; its first instant stands for it. What came out between 0 and 1 is void.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Sequence

from core.errors import MalformedInput
from core.questions import CrowdForecast, Question
from crawlers.contract import Drop, Repeat
from crawlers.json_answers import read_time
from crawlers.questions.fields import YES_NO, number
from crawlers.questions.published import Entry, File, Published, entries, optional, required

LICENCE = "CC-BY-SA-4.0"

Key = tuple[str, str]  # source and id


def is_forecastbench(file: File) -> bool:
    """Whether a file is a question set or a resolution set."""
    value = file.value
    return isinstance(value, dict) and ("questions" in value or "resolutions" in value)


def read_forecastbench(files: Sequence[File], source: str, into: Published) -> None:
    """Add the questions of some sets, which the resolution sets among them resolve.

    Raises:
        MalformedInput: a set is not as above; names file, entry and what was expected.
    """
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
    """Return when each market was resolved, and to what, the first date first."""
    found: dict[Key, list[tuple[dt.datetime, float]]] = defaultdict(list)
    for file in files:
        for place, entry in enumerate(entries(file.value["resolutions"], str(file.path)), 1):
            where = file.where(place)
            if not isinstance(entry.get("id"), str):
                continue  # of two events at once
            if not isinstance(entry.get("resolved"), bool):
                raise MalformedInput(
                    f"{where}: 'resolved' is {entry.get('resolved')!r:.80}; expected true or false"
                )
            if entry["resolved"]:
                outcome = number(entry.get("resolved_to"))
                resolved_at = _day(entry, "resolution_date", where)
                found[_key(entry, where)].append(
                    (resolved_at, math.nan if outcome is None else outcome)
                )
    return {key: sorted(each) for key, each in found.items()}


def _key(entry: Entry, where: str) -> Key:
    return required(entry, "source", where), required(entry, "id", where)


def _day(entry: Entry, key: str, where: str) -> dt.datetime:
    found = read_time(required(entry, key, where), dt.UTC)
    if found is None:
        raise MalformedInput(f"{where}: {key!r} is {entry[key]!r:.80}; expected such as 2024-12-08")
    return found


def _instant(entry: Entry, key: str, where: str) -> dt.datetime | None:
    return None if optional(entry, key, where) is None else _day(entry, key, where)


def _add(
    entry: Entry,
    resolutions: dict[Key, list[tuple[dt.datetime, float]]],
    source: str,
    where: str,
    into: Published,
) -> None:
    if not isinstance(entry.get("id"), str) or entry.get("combination_of", "N/A") != "N/A":
        into.passed_over["combination"] += 1
        return
    if entry.get("resolution_dates", "N/A") != "N/A":
        into.passed_over["dataset"] += 1
        return
    if not (outcomes := resolutions.get(_key(entry, where))):
        into.passed_over["open"] += 1
        return
    found = _question(entry, outcomes, source, where)
    if isinstance(found, Drop):
        into.others.append(found)
        return
    if found.question_id in into.questions:  # the sets come in the order of their dates
        into.others.append(Repeat(found.question_id, f"{where} replaces a former set's"))
    into.questions[found.question_id] = found


def _question(
    entry: Entry, outcomes: list[tuple[dt.datetime, float]], source: str, where: str
) -> Question | Drop:
    market, name = _key(entry, where)
    resolved_at, outcome = outcomes[0]
    opened_at = _instant(entry, "market_info_open_datetime", where)
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
        closed_at=_instant(entry, "market_info_close_datetime", where),
        resolved_at=max(resolved_at, opened_at),
        status="resolved" if is_clear else "void",
        tags=(market,),
        crowd_forecast=_crowd(entry, resolved_at, where),
        licence=LICENCE,
    )


def _crowd(entry: Entry, resolved_at: dt.datetime, where: str) -> tuple[CrowdForecast, ...]:
    value, at = (
        number(entry.get("freeze_datetime_value")),
        _instant(entry, "freeze_datetime", where),
    )
    if value is None or not 0 <= value <= 1 or at is None or at >= resolved_at:
        return ()
    pairs = zip(YES_NO, (value, 1 - value), strict=True)
    return tuple(CrowdForecast(option, each, at) for option, each in pairs)
