r"""Find the chosen option in a response to a question that asked for the letter of one option.

A letter counts only if it is stated as the answer. So the words "A" and "I" in "A recession" and "I
think" do not count. The first of these rules that finds an option decides:

1. the whole response is a letter, or an option's text ("(B)", "**b**", "Option B.", "No");
2. the last statement of an answer: "the answer is B", "I think C", "\boxed{D}", "B is the most
   likely", or a last line with only a letter;
3. the letter at the beginning, as in a list: "B. No", "B) because …", unless several lines begin
   with letters (a repeated list of options);
4. an option's text that is stated as the answer ("the answer is No"), at the beginning
   ("No. It will …") or as the last line.

A statement of several letters ("B or C", "A/B") is no answer, and it cancels earlier statements.
Doubted or conditional statements, and those about another rank, are ignored ("if the answer is A",
"the runner-up answer is A"). Rule 3 finds no answer in a first line with numbers for several
letters ("A (30%), B (70%)"). An option's text that starts with a letter ("B. Obama") has priority
over the option of that letter. Text between ``<think>`` and ``</think>`` is ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from core.responses import answering_part
from models.options.protocols import LETTERS

_MOST_CHARS = 2_000  # maximum number of characters read at each end of a response
VERSION = 4  # increase if a change here finds other choices in the same responses

_TAG = re.compile(r"</?[a-zA-Z]\w*>")
_BOXED = re.compile(r"\\boxed\{\s*(?:\\(?:text|math)[a-z]*\s*\{)*([^{}]*)\}+")
# Options may begin with signs ("> 5", "#2"), so remove only Markdown marks with a space behind.
_MARKUP = re.compile(
    r"^(?:\s*>+(?:\s+(?!\d)|\Z))+|^\s*#+\s+|^\s*[-–•]\s+(?=\D)|[*_`$\u200b\ufeff]+", re.MULTILINE
)
_QUOTES = str.maketrans("“”„‘’", '"""\'\'')

_NAMED = r"(?:options?|outcomes?|choices?|letters?|answers?|opción|opção|opzione)"
_WHY = r"(?:because|since|given|due|based|which|as the|with|i (?:think|guess|believe|suppose))\b"
# Nouns for an answer. The stated option follows nearby on the same line.
_ANSWER = (
    rf"\b(?:{_NAMED}|prediction|pick|guess|forecast|response|selection|vote|bet"
    r"|réponse|antwort|respuesta|resposta|risposta)\b"  # French, German, Spanish and so on
)
_IS = r"(?:\b(?:is|are|be|was|remains|est|ist|lautet|es|é|è)\b(?:\s*:)?|:|=|->|→)"
_NOT = r"(?:not|never|cannot|neither|nor|hardly)\b|\w+n't\b"
_SAYS = (
    rf"\b(?:i|i'd|we|i'll|i'm|let's)\s(?:(?!{_NOT}|doubt)\w+\s){{0,3}}?"
    r"(?:think|choose|choosing|pick|picking|select|selecting|say|predict|predicting|believe|guess"
    r"|guessing|bet|lean|leaning|vote|answer|go|going|forecast|opt)\b"
    r"(?:\s(?:on|for|to|towards?|that|with|it|is|it's|will|be|the|most|likely|answer)\b)*:?"
    r"|\b(?:it|that)(?:'s|\s(?:is|will\sbe|would\sbe))"
    r"|\bif\s(?:(?:i|we)\s(?:had\sto|must|have\sto)|forced\sto)\s(?:choose|pick|guess|bet|decide|answer)"
    r"(?:\s(?:one|an?\s\w+|between\sthem))?(?:\s?[:,]|\s?->)(?:\sit\swould\sbe)?"
    r"|\bje\s(?:choisis|dirais|penche\spour|pense\sque\sc'est)|(?<!no\s)\b(?:elijo|escojo|creo\sque\ses)"
    r"|\bich\s(?:wähle|nehme|tippe\sauf|denke,?|glaube,?|würde\ssagen:?)"
    r"|(?<!not\s)(?<!n't\s)\b(?:unlikely|improbable|impossible|(?:ruled|rule|is)\sout)[,;]?\s(?:so|hence|thus|therefore),?(?=\s)"
    r"|(?:\A|(?<=\n))(?:probably|(?:most\s)?likely|final)\b:?"
)
_CALLED = (
    rf"(?:{_ANSWER}(?:(?!\b(?:{_NOT}|unlikely|improbable|least)\b)[^.\n]){{0,40}}?{_IS}"
    rf"|{_ANSWER}\"?\s(?=[(\[]))"
)
_SURELY = r"(?:(?:most|very)?\s?(?:probably|likely|definitely|clearly|certainly|still|indeed)\s)?"
_BEST = (
    r"(?:is|seems|looks|appears)\s(?:to\sbe\s)?"
    r"(?:my\b|the\s(?:most\s(?:likely|probable|plausible)|likeliest|best|correct|right)"
    r"|(?:most|more)\s(?:likely|probable|plausible)|likeliest|likelier|likely|correct|right|best)"
    r"(?!\s(?:not|wrong|false|incorrect|unlikely|to\s(?:fail|be\s(?:wrong|false))))"
)


# Words that state the following letter or option text as the answer.
_STATES = rf"(?:{_CALLED}|{_SAYS})\s*{_SURELY}(?:(?:the|la|die|donc)\s)?(?:{_NAMED}\s)?[\"']?"

# Words that cancel the statement after them: doubt, a condition, or another rank.
_FILLING = (
    r"(?:\s(?:that|if|whether|the|my|its|it|this|to|say|correct|right|true|best|most|likely))*"
)
_DOUBTED = re.compile(
    r"\b(?:if|unless|whether|suppose|supposing|assuming|unsure|unclear"
    r"|(?<!no\s)(?<!without\s)(?<!without\sa\s)doubt\w*"
    rf"|(?:{_NOT})(?:\s\w+)?\s(?:think|believe|say|claim|sure|certain|convinced|clear|mean)"
    rf"|(?:unlikely|impossible|wrong|false|incorrect)\s(?:that|if|to)){_FILLING}[ ]*\Z",
    re.IGNORECASE,
)
_LESSER = re.compile(
    r"\b(?:least(?:\s\w+)?|worst|second(?:[ -](?!thought)\w+){0,2}|third|next[ -]\w+|runner-up"
    r"|opposite|other|alternative|wrong|incorrect|unlikely|unlikeliest)[ ]\Z",
    re.IGNORECASE,
)
_NOUN = re.compile(_ANSWER, re.IGNORECASE)
_LOOKED_BACK = 80  # characters


def extract_choice(response: str, options: Sequence[str]) -> int | None:
    """Return the index in ``options`` of the chosen option, or None without a choice.

    ``options`` are in the order shown to the model, from letter A on.
    """
    text = _plain(response)
    if not text:
        return None
    shown = [_plain(option).casefold() for option in options]
    if alone := _patterns(len(options))[2].fullmatch(text):
        return LETTERS.index(alone["letter"].upper())
    if (same := _equal(text, shown)) is not None:
        return same
    stated, is_clear = _last_stated(text, shown)
    if stated is not None or not is_clear:
        return stated
    first = _leading(text, shown)
    return first if first is not None else _stated_text(text, shown)


def _plain(response: str) -> str:
    text = answering_part(response)
    if len(text) > 2 * _MOST_CHARS:
        text = f"{text[:_MOST_CHARS]}\n…\n{text[-_MOST_CHARS:]}"
    text = unicodedata.normalize("NFKC", _TAG.sub("\n", text)).translate(_QUOTES)
    text = _BOXED.sub(r"\nThe answer is: \1\n", text)
    lines = (" ".join(line.split()) for line in _MARKUP.sub("", text).splitlines())
    return "\n".join(filter(None, lines))


@lru_cache(maxsize=32)
def _patterns(count: int) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a stated letter, a line that starts with a letter, and a letter alone."""
    letters = LETTERS[:count]
    # The letter must not be part of a word or a name, as in "C++", "U.S.", "A-list", "D&D".
    ends = r"(?![\w+&'-]|[./]\w)"
    bracketed = rf"[(\[{{\"'](?P<%s>[{letters}])[)\]}}\"']"
    delimited = rf"(?P<%s>[{letters}])(?=\s*(?:[):;!?\n]|[.,](?!\w)|\Z)|\s(?:\(|[-–—]\s|{_WHY}))"
    rejected = (
        rf"(?!\s(?:is|seems|looks|was)\s(?:{_NOT}|less|un\w+|wrong|incorrect|out)\b"
        r"|\s(?:(?:ist|est|es)\s(?:nicht|un\w+|fal\w+|fau\w+|im\w+|peu)|n'est|no\ses)\b)"
    )
    upper = letters.replace("A", "").replace("I", "")
    # A letter before a word must be upper case, and not A or I, which are also words.
    bare = rf"(?-i:(?P<%s>[{upper}])){ends}{rejected}" if upper else r"(?P<%s>(?!))"
    one = "|".join(form % f"l{n}" for n, form in enumerate((bracketed, delimited, bare)))
    before = rf"{_STATES}(?:{one})"
    starts = rf"(?:\A|(?<=\n)|(?<=[.,;:!?]\s)|\b(?:that|so|and|think|{_NAMED})\s)"
    likely = rf"{starts}(?:{_NAMED}\s)?\(?(?-i:(?P<l3>[{letters}]))\)?[.,]?\s{_BEST}"
    alone_before = rf"(?<!\n[{letters}]\n)(?<!\A[{letters}]\n)"  # a list of letters is no answer
    last = (
        rf"(?<=\n){alone_before}[(\[\"']?(?:{_NAMED}[\s:]+)?\(?(?P<l4>[{letters}])[)\]\"']?[.!]?\Z"
    )
    leading = rf"[(\[\"']?(?:{_NAMED}\s)?\(?(?P<letter>[{letters}])"
    follows = rf"(?:[)\]\"']+[.:,;]?|[.:;](?!\w))(?:\s|\Z)|,?\s{_WHY}|\s(?:[-–—]\s|\()|\n|\Z"
    alone = rf"[\W_]*(?:the\s)?(?:{_NAMED}[\s:]+)?[\W_]*(?P<letter>[{letters}])[\W_]*"
    return (
        re.compile(f"{before}|{likely}|{last}", re.IGNORECASE),
        re.compile(rf"^{leading}(?:{follows})", re.IGNORECASE | re.MULTILINE),
        re.compile(alone, re.IGNORECASE),
    )


def _last_stated(text: str, shown: Sequence[str]) -> tuple[int | None, bool]:
    """Return the last stated option or None, and False if the statement has several letters."""
    choice, is_clear, count = None, True, len(shown)
    more = re.compile(rf"[)\"'\]]?\s*(?:,|/|&|\bor\b|\band\b)\s*[(\"]?[{LETTERS[:count]}]\b(?!')")
    for found in _patterns(count)[0].finditer(text):
        if not _is_meant(text, found):
            continue
        name = found.lastgroup or ""
        is_clear = more.match(text, found.end(name)) is None
        choice = _option_at(text, found.start(name), shown) if is_clear else None
    return choice, is_clear


def _is_meant(text: str, found: re.Match[str]) -> bool:
    """Return True if a statement is not doubted, conditional, or about another rank."""
    before = text[max(0, found.start() - _LOOKED_BACK) : found.start()]
    is_noun = _NOUN.match(found.group()) is not None
    return not _DOUBTED.search(before) and not (is_noun and _LESSER.search(before))


def _option_at(text: str, start: int, shown: Sequence[str]) -> int:
    """Return the index of the option whose text, or else whose letter, stands at ``start``."""
    rest = text[start : start + _MOST_CHARS].casefold()
    same = [
        index
        for index, option in enumerate(shown)
        if len(option) > 1 and rest.startswith(option) and not rest[len(option) :][:1].isalnum()
    ]
    longest = max(same, key=lambda index: len(shown[index]), default=None)
    return LETTERS.index(text[start].upper()) if longest is None else longest


def _leading(text: str, shown: Sequence[str]) -> int | None:
    """Return the option whose letter begins the text, unless lines begin with different letters."""
    pattern, letters = _patterns(len(shown))[1], LETTERS[: len(shown)]
    first = pattern.match(text)
    if first is None or len({found["letter"].upper() for found in pattern.finditer(text)}) > 1:
        return None
    shares = re.findall(rf"\b([{letters}])\b[\s(:=–-]*\d", text.splitlines()[0])
    return None if len(set(shares)) > 1 else _option_at(text, first.start("letter"), shown)


def _equal(text: str, shown: Sequence[str]) -> int | None:
    said = text.casefold().strip(" .!\"'()[]")
    same = [index for index, option in enumerate(shown) if option.strip(" .!\"'()[]") == said]
    return same[0] if len(same) == 1 else None


def _stated_text(text: str, shown: Sequence[str]) -> int | None:
    ends = rf"(?=\s*(?:[.;:!)\"'\n](?!\w)|\Z)|,?\s{_WHY})"
    # Try the longest option first, because its text may begin with another option's text.
    order = sorted(range(len(shown)), key=lambda index: -len(shown[index]))
    clear = [index for index in order if shown[index] and shown.count(shown[index]) == 1]
    texts = "|".join(f"(?P<o{index}>{re.escape(shown[index])})" for index in clear)
    if not texts:
        return None
    pattern = re.compile(rf"(?:{_STATES}|\A[\"']?|(?<=\n))(?:{texts}){ends}", re.IGNORECASE)
    said = text.casefold()
    found = [match.lastgroup for match in pattern.finditer(said) if _is_meant(said, match)]
    names = {name for name in found if name}
    return int(names.pop()[1:]) if len(names) == 1 else None
