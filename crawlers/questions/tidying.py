"""Questions as they are sealed: texts cleaned, and what cannot be asked left out.

Crawlers and imports share this, so that a question reads the same wherever it came from.
"""

from __future__ import annotations

import dataclasses

from core.questions import Question
from crawlers.cleaning import clean, normalise
from crawlers.contract import Drop, DropReason

MAX_OPTIONS = 200
MAX_TITLE_CHARS = 2_000  # of an option, too
MAX_TEXT_CHARS = 100_000  # of background and criteria


def tidy(question: Question) -> Question | Drop:
    """Return a question with clean texts, or why it cannot be asked."""
    tidied = dataclasses.replace(
        question,
        url=normalise(question.url) if question.url else None,
        title=one_line(question.title),
        background=_text(question.background),
        resolution_criteria=_text(question.resolution_criteria),
        options=tuple(map(one_line, question.options)),
        tags=tuple(tag for tag in map(one_line, question.tags) if tag),
        crowd_forecast=tuple(
            dataclasses.replace(forecast, option=one_line(forecast.option))
            for forecast in question.crowd_forecast
        ),
    )
    if refusal := _refuse(tidied):
        return Drop(question.question_id, *refusal)
    return tidied


def one_line(text: str) -> str:
    """Return a title or an option: no markup, no line breaks."""
    return " ".join(clean(text).split())


def _text(text: str | None) -> str | None:
    return (clean(normalise(text)) or None) if text else None


def _refuse(question: Question) -> tuple[DropReason, str] | None:
    options, texts = question.options, (question.background, question.resolution_criteria)
    if not question.title or not all(options):
        return "empty", "the title or an option is empty"
    if not 2 <= len(options) <= MAX_OPTIONS or len(set(options)) < len(options):
        return "unknown_format", f"{len(options)} options; expected 2 to {MAX_OPTIONS}, all unlike"
    if max(map(len, (question.title, *options))) > MAX_TITLE_CHARS:
        return "too_long", f"title or option of more than {MAX_TITLE_CHARS} characters"
    if max(len(text or "") for text in texts) > MAX_TEXT_CHARS:
        return "too_long", f"a text of more than {MAX_TEXT_CHARS} characters"
    if question.resolved_at is not None and question.opened_at > question.resolved_at:
        return "parse_error", f"opened {question.opened_at}, after it was resolved"
    return None
