r"""Reading a choice off what a model wrote, where it was asked for the letter of one option.

A letter counts where it is stated as the answer, never where it merely occurs: "A recession" and
"I think" have no letters in them. In this order, the first that gives something decides:

1. all that was written is a letter, or an option's text ("(B)", "**b**", "Option B.", "No");
2. the last statement of an answer: "the answer is B", "I think C", "\boxed{D}", "B is the most
   likely", or a last line that is a letter alone;
3. the letter that the text begins with, as in a list: "B. No", "B) because …", unless several
   lines begin so (then the options were repeated);
4. the text of an option where an answer is stated ("the answer is No"), at the beginning
   ("No. It will …") or as the last line.

A statement of several letters ("B or C", "A/B") is no answer, and neither is what comes before it.
Reasoning between ``<think>`` and ``</think>`` is not looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from models.question_prompt import LETTERS

_MOST_CHARS = 2_000  # looked at, at the beginning and at the end
VERSION = 1  # raised when a change here makes other choices of the same responses

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z]\w*>")
_BOXED = re.compile(r"\\boxed\{\s*(?:\\text(?:bf)?\{)?([^{}]*)\}+")
_MARKUP = re.compile(r"[*_`#>$\u200b\ufeff]+")
_QUOTES = str.maketrans("“”„‘’", '"""\'\'')

_NAMED = r"(?:options?|outcomes?|choices?|letters?|answers?)"
_WHY = r"(?:because|since|given|due|based|which|as the|with)\b"
# What an answer is called; then, on the same line and near by, what it is said to be.
_ANSWER = rf"\b(?:{_NAMED}|prediction|pick|guess|forecast|response|selection|vote|bet)\b"
_IS = r"(?:\b(?:is|are|be|was|remains)\b(?:\s*:)?|:|=|->|→)"
_NOT = r"(?:not|never|cannot|neither|nor|hardly)\b|\w+n't\b"
_SAYS = (
    rf"\b(?:i|i'd|we|i'll|i'm|let's)\s(?:(?!{_NOT})\w+\s){{0,3}}?"
    r"(?:think|choose|choosing|pick|picking|select|selecting|say|predict|predicting|believe|guess"
    r"|guessing|bet|lean|leaning|vote|answer|go|going|forecast|opt)\b"
    r"(?:\s(?:on|for|to|towards?|that|with|it|is|it's|will|be|the|most|likely|answer)\b)*:?"
    r"|\b(?:it|that)(?:'s|\s(?:is|will\sbe|would\sbe))"
    r"|(?:\A|(?<=\n))(?:probably|(?:most\s)?likely|final)\b:?"
)
_SURELY = r"(?:(?:most|very)?\s?(?:probably|likely|definitely|clearly|certainly|still|indeed)\s)?"
_BEST = (
    r"(?:is|seems|looks|appears)\s(?:to\sbe\s)?"
    r"(?:my\b|the\s(?:most\s(?:likely|probable|plausible)|likeliest|best|correct|right)"
    r"|(?:most|more)\s(?:likely|probable|plausible)|likeliest|likely|correct|right|best)"
    r"(?!\s(?:not|wrong|false|incorrect|unlikely|to\s(?:fail|be\s(?:wrong|false))))"
)


def extract_choice(response: str, options: Sequence[str]) -> int | None:
    """Return which option a response chooses, in the order shown; None where it chooses none.

    Args:
        response: as the model wrote it.
        options: as they were shown, the first as A; not more than there are letters.
    """
    text = _plain(response)
    if not text:
        return None
    shown = [_plain(option).casefold() for option in options]
    whole = _alone(text, len(options))
    if whole is not None:
        return whole
    if (same := _equal(text, shown)) is not None:
        return same
    stated, is_clear = _last_stated(text, len(options))
    if stated is not None or not is_clear:
        return stated
    first = _leading(text, len(options))
    return first if first is not None else _stated_text(text, shown)


def _plain(response: str) -> str:
    """Return the text without reasoning and markup, a line each without spaces around."""
    text = _THOUGHT.sub("", response)
    text = _END_OF_THOUGHT.split(text)[-1]  # some servers leave the opening tag to the prompt
    if len(text) > 2 * _MOST_CHARS:
        text = f"{text[:_MOST_CHARS]}\n…\n{text[-_MOST_CHARS:]}"
    text = unicodedata.normalize("NFKC", _TAG.sub("\n", text)).translate(_QUOTES)
    text = _BOXED.sub(r"\nThe answer is: \1\n", text)
    lines = (" ".join(line.split()) for line in _MARKUP.sub("", text).splitlines())
    return "\n".join(filter(None, lines))


@lru_cache(maxsize=32)
def _patterns(count: int) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of statements, of a line that begins with a letter, of one alone."""
    letters = LETTERS[:count]
    # Nothing of a word, an abbreviation or a name: not "C++", "U.S.", "A-list", "I'm", "D&D".
    ends = r"(?![\w+&'-]|[./]\w)"
    bracketed = rf"[(\[{{\"'](?P<%s>[{letters}])[)\]}}\"']"
    delimited = rf"(?P<%s>[{letters}])(?=\s*(?:[):;!?\n]|[.,](?!\w)|\Z)|\s(?:\(|[-–—]\s|{_WHY}))"
    rejected = rf"(?!\s(?:is|seems|looks|was)\s(?:{_NOT}|less|un\w+|wrong|incorrect|out)\b)"
    upper = letters.replace("A", "").replace("I", "")
    # Followed by a word, A is the article and I the pronoun; lower case is part of a sentence.
    bare = rf"(?-i:(?P<%s>[{upper}])){ends}{rejected}" if upper else r"(?P<%s>(?!))"
    one = "|".join(form % f"l{n}" for n, form in enumerate((bracketed, delimited, bare)))
    named = rf"(?:the\s)?(?:{_NAMED}\s)?[\"']?"
    called = rf"{_ANSWER}(?:(?!\b{_NOT})[^.\n]){{0,40}}?{_IS}|{_ANSWER}\"?\s(?=[(\[])"
    before = rf"(?:{called}|{_SAYS})\s*{_SURELY}{named}(?:{one})"
    starts = rf"(?:\A|(?<=\n)|(?<=[.,;:!?]\s)|\b(?:that|so|and|think|{_NAMED})\s)"
    likely = rf"{starts}(?:{_NAMED}\s)?\(?(?-i:(?P<l3>[{letters}]))\)?[.,]?\s{_BEST}"
    last = rf"(?<=\n)[(\[\"']?(?:{_NAMED}[\s:]+)?\(?(?P<l4>[{letters}])[)\]\"']?[.!]?\Z"
    leading = rf"[(\[\"']?(?:{_NAMED}\s)?\(?(?P<letter>[{letters}])"
    follows = rf"(?:[)\]\"']+[.:,;]?|[.:;](?!\w))(?:\s|\Z)|,?\s{_WHY}|\s(?:[-–—]\s|\()|\n|\Z"
    alone = rf"[\W_]*(?:the\s)?(?:{_NAMED}[\s:]+)?[\W_]*(?P<letter>[{letters}])[\W_]*"
    return (
        re.compile(f"{before}|{likely}|{last}", re.IGNORECASE),
        re.compile(rf"^{leading}(?:{follows})", re.IGNORECASE | re.MULTILINE),
        re.compile(alone, re.IGNORECASE),
    )


def _alone(text: str, count: int) -> int | None:
    found = _patterns(count)[2].fullmatch(text)
    return LETTERS.index(found["letter"].upper()) if found else None


def _last_stated(text: str, count: int) -> tuple[int | None, bool]:
    """Return the letter stated last, and whether the last statement is of one letter alone."""
    choice, is_clear = None, True
    more = re.compile(rf"[)\"'\]]?\s*(?:,|/|&|\bor\b|\band\b)\s*[(\"]?[{LETTERS[:count]}]\b(?!')")
    for found in _patterns(count)[0].finditer(text):
        letter = next(value for value in found.groups() if value)
        where = found.end(found.lastgroup or 0)
        is_clear = more.match(text, where) is None
        choice = LETTERS.index(letter.upper()) if is_clear else None
    return choice, is_clear


def _leading(text: str, count: int) -> int | None:
    """Return the letter that the text begins with, where no other line begins with another."""
    pattern = _patterns(count)[1]
    first = pattern.match(text)
    if first is None or len({found["letter"].upper() for found in pattern.finditer(text)}) > 1:
        return None
    return LETTERS.index(first["letter"].upper())


def _equal(text: str, shown: Sequence[str]) -> int | None:
    """Return the one option whose text this is."""
    said = text.casefold().strip(" .!\"'()[]")
    same = [index for index, option in enumerate(shown) if option.strip(" .!\"'()[]") == said]
    return same[0] if len(same) == 1 else None


def _stated_text(text: str, shown: Sequence[str]) -> int | None:
    """Return the option whose text is stated as the answer."""
    ends = rf"(?=\s*(?:[.;:!)\"'\n](?!\w)|\Z)|,?\s{_WHY})"
    # The longest first: one option may begin with another.
    order = sorted(range(len(shown)), key=lambda index: -len(shown[index]))
    clear = [index for index in order if shown[index] and shown.count(shown[index]) == 1]
    texts = "|".join(f"(?P<o{index}>{re.escape(shown[index])})" for index in clear)
    if not texts:
        return None
    before = rf"{_ANSWER}[^.\n]{{0,40}}?{_IS}\s*[\"']?"
    pattern = re.compile(rf"(?:{before}|\A[\"']?|(?<=\n))(?:{texts}){ends}", re.IGNORECASE)
    found = [match.lastgroup for match in pattern.finditer(text.casefold())]
    names = {name for name in found if name}
    return int(names.pop()[1:]) if len(names) == 1 else None
