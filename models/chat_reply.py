"""Messages of a chat API: texts as they are sent; what an answer says, counts and chooses."""

from __future__ import annotations

from typing import Any

from core.answers import Answer
from core.questions import Question
from models.extraction import extract_choice
from models.question_prompt import Prompt

_TEXTS = (None, "text", "output_text")  # types of parts
_MOST_TOKENS = 10**9  # of one answer; who states more, states none


def user_message(text: str) -> list[dict[str, str]]:
    """Return the messages of a request that asks one thing."""
    return [{"role": "user", "content": without_lone_surrogates(text)}]


def without_lone_surrogates(text: str) -> str:
    """Return a text that can be written as UTF-8: half an emoji, cut off, cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def usage_of(answer: dict[str, Any]) -> tuple[int, int] | None:
    """Return the tokens of input and output that an answer states, or None."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    taken, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(taken) is not int or type(made) is not int:
        return None
    is_sane = min(taken, made) >= 0 and max(taken, made) <= _MOST_TOKENS
    return (taken, made) if is_sane else None


def first_choice(answer: dict[str, Any]) -> tuple[dict[str, Any], object]:
    """Return an answer's message, empty where it has none, and why it ends there."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice = first if isinstance(first, dict) else {}
    message = choice.get("message")
    return message if isinstance(message, dict) else {}, choice.get("finish_reason")


def answer_of(question: Question, prompt: Prompt, answer: dict[str, Any]) -> Answer:
    """Read the choice off an answer; without one it has a reason.

    Reasons: refusal and content_filter as the API says; length: cut before a choice was stated;
    empty; no_choice.

    Args:
        question: that was asked.
        prompt: in which it was shown.
        answer: as the API gave it.
    """
    message, finish = first_choice(answer)
    text = text_of(message.get("content"))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return _unparsed(question, "refusal", text or refusal)
    if finish == "content_filter":
        return _unparsed(question, "content_filter", text)
    shown = [question.options[index] for index in prompt.order]
    place = extract_choice(text, shown)
    if place is not None:
        return Answer(question.question_id, None, prompt.order[place], response=text)
    if finish == "length":
        return _unparsed(question, "length", text)
    return _unparsed(question, "no_choice" if text.strip() else "empty", text)


def _unparsed(question: Question, reason: str, text: str) -> Answer:
    return Answer(question.question_id, None, None, reason, text)


def text_of(content: object) -> str:
    """Return the text of a message, which some servers give in parts; reasoning is none of it."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    shown = [each for each in parts if isinstance(each, dict) and each.get("type") in _TEXTS]
    texts = (part.get("text") for part in shown)
    return "".join(text for text in texts if isinstance(text, str))
