"""FreshBench's published questions of Good Judgment Open (``gjo.json``, paper 001).

An entry has ``Question``, ``Started_time`` and ``Closed_time`` ("Feb 09, 2024 06:00PM UTC", in
later versions the day alone), ``Description``, ``Tags_list`` and ``Possible_Answers_dict``: of each
option ``Correct?`` and ``Final Crowd Forecast`` ("86%"). The file is one JSON list, or an object a
line.

When a question was resolved is not told, so the day of its closing stands for it. There are no ids:
title, opening and options make one, and an entry that is there again counts once. Who has no right
answer, or more than one, is void; so is who has another in another entry.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from core.errors import MalformedInput
from core.questions import CrowdForecast, Question
from crawlers.contract import Repeat
from crawlers.questions.published import Entry, File, Published, entries, optional, required
from crawlers.user_files import require_unicode

LICENCE = "LicenseRef-unknown"
_FORMATS = ("%b %d, %Y %I:%M%p UTC", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ")
_PERCENT = re.compile(r"\s*<?\s*(\d{1,3}(?:\.\d+)?)\s*%\s*")


def is_freshbench(file: File) -> bool:
    """Whether a file is of this kind, by its first entry."""
    value = file.value[:1] if isinstance(file.value, list) else [file.value]
    return any(isinstance(each, dict) and "Possible_Answers_dict" in each for each in value)


def read_freshbench(file: File, source: str, into: Published) -> None:
    """Add the questions of a file.

    Raises:
        MalformedInput: an entry is not as above; names file, entry and what was expected.
    """
    value = file.value if isinstance(file.value, list) else [file.value]
    for number, entry in enumerate(entries(value, str(file.path)), 1):
        question = _question(entry, source, file.where(number))
        former = into.questions.setdefault(question.question_id, question)
        if former is question:
            continue
        into.others.append(Repeat(question.question_id, f"{file.where(number)} is there before"))
        if former.answer_index != question.answer_index:
            void = dataclasses.replace(former, answer_index=None, status="void")
            into.questions[question.question_id] = void


def _question(entry: Entry, source: str, where: str) -> Question:
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
        crowd_forecast=_crowd(answers, closed_at),
        licence=LICENCE,
    )


def _instant(entry: Entry, key: str, where: str) -> dt.datetime:
    written = required(entry, key, where).strip()
    for form in _FORMATS:
        try:
            return dt.datetime.strptime(written, form).replace(tzinfo=dt.UTC)
        except ValueError:
            continue
    raise MalformedInput(
        f"{where}: {key!r} is {written!r:.80}; expected 'Feb 09, 2024 06:00PM UTC' or '2024-02-09'"
    )


def _answers(entry: Entry, where: str) -> dict[str, dict[str, Any]]:
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


def _tags(entry: Entry, where: str) -> tuple[str, ...]:
    tags = entry.get("Tags_list") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise MalformedInput(f"{where}: 'Tags_list' is {tags!r:.80}; expected a list of texts")
    return tuple(require_unicode(tag, f"{where}: a tag") for tag in tags)


def _crowd(answers: Mapping[str, Entry], closed_at: dt.datetime) -> tuple[CrowdForecast, ...]:
    """Return the crowd's last forecast, where all options have one; given in whole percents."""
    found = []
    for option, told in answers.items():
        match = _PERCENT.fullmatch(str(told.get("Final Crowd Forecast")))
        if match is None or float(match[1]) > 100:
            return ()
        found.append(CrowdForecast(option, float(match[1]) / 100, closed_at))
    return tuple(found)
