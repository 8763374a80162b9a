"""Texts that templates of wikis show in running text.

``_PATTERNS`` has templates that show their arguments. ``{1}`` and ``{-1}`` are the first and the
last unnamed argument, ``{alt|1}`` is the first of several that is given. A part in ``<>`` is left
out if its arguments are empty. ``_MADE`` has templates that need a function, ``_UNSEEN`` those that
show nothing. All others are gaps; a single argument is a guess at what they show.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

from crawlers.text.wiki_gaps import GONE, inline, protect, strip_marks, unknown

_PATTERNS = {
    # Words in another type, script or language.
    "{1}": "nowrap|nobr|nobreak|no wrap|small|smaller|big|bigger|larger|large|huge|nobold|noitalic"
    "|normal|strong|em|strikethrough|strike|s|del|ins|u|underline|uline|overline|smallcaps|sc|sc2"
    "|smallcaps all|allcaps|mono|code|tt|kbd|key|key press|samp|var|mvar|math|bigmath|serif"
    "|sans-serif|abbr|abbrv|abbreviation|tooltip|visible anchor|vanchor|unicode|nastaliq|nq|naskh"
    "|polytonic|sup|sub|smallsup|superscript|subscript|sups|subs|small caps|aut|au|ruby|ruby-ja"
    "|proper name|chem2|pslink|format link|nts|ntsa|number|center|block indent|nihongo foot|text"
    "|translation note|flagu|flagcountry|noflag|nft|birth year|gli|term|defn|poem|lautschrift",
    "{name|1}": "flag|country",
    "{text|2}": "lang|rtl-lang|script|font color|fontcolor|color|colour|fgcolor|background color"
    "|highlight|sort|hover title|h:title|native name|native phrase|audio|pronunciation|langue"
    "|font size",
    "{-1}": "transl|transliteration|translit|tlit|rtgs|resize|wikt-lang|wikt",
    "\n{-1}\n": "plainlist|plain list|flatlist|columns-list|div list",
    "{lt|alt|1|en}": "ill|illm|ill2|interlanguage link|interlanguage link multi|link-interwiki",
    "{2|1}": "birth-date|death-date",
    "{text|1}": "refnec|citation needed span|cnspan|clarify span|dubious span",
    "\n{text|quote|1}\n": "quote|blockquote|bquote|block quote|quotation|long quote|zitat|cquote"
    "|poem quote|poemquote|verse translation|pull quote|centered pull quote|rquote",
    '"{quote|1}"': '"|qq|q|quote inline',
    "'{1}'": "gloss|literal|lit gloss",
    "lit. '{1}'": "lit|lit.|literally|literal translation",
    "{1}< ({2}, {3})>< {4}>": "nihongo|nihongo4",
    "{3}< ({2}, {1})>": "nihongo3",
    # Signs. A no-break space becomes a space.
    "'": "'|`|apostrophe", "'s": "'s", '"': "\"'|'\"",
    "\xa0": "nbsp|space|spaces|thinsp|thin space|hair space|hairsp|nnbsp|spc",
    "": "zwsp|zwj|zwnj|shy|wbr|wj|word joiner",
    " – ": "snd|spnd|spaced ndash|spaced en dash|sndash|spaced en|spaced dash",
    "–": "ndash|en dash|endash", "—": "mdash|em dash|emdash|dash|mdashb|–|—",
    " — ": "spaced mdash|spaced em dash|smd",
    " · ": "·|•|dot|middot|bull|bullet|bold middot|\\", "-": "hyphen|nbhyph", "…": "ellipsis|...",
    "−": "minus", "×": "times|x", "⇌": "eqm", "±{1}": "±|+-", "°": "degree|deg",
    "/": "/", "|": "!", "=": "=",
    "√{1}": "sqrt|radic", "π": "pi", "ʻ": "okina|'okina", "♭": "flat", "♯": "sharp", "♮": "natural",
    "†": "dagger|†|extinct", "′": "prime", "″": "pprime", "No. {1}": "numero|no.",
    "U+{1}< {2}>": "unichar|unicode char", "CO2": "co2",
    "[": "bracket|(", "]": ")", "[{1}]": "brackets|interp|sqb", "|{1}|": "abs",
    "⟨{1}⟩": "angbr|angle bracket|angle brackets|grapheme",
    # Times and numbers.
    "c. {1}<–{2}>": "circa|c.|ca.|c|ca", "fl. {1}<–{2}>": "floruit|fl.|fl",
    "r. {1}<–{2}>": "reign|r.", "{1} BC": "bc", "{1} BCE": "bce", "AD {1}": "ad", "{1} CE": "ce",
    "{1} AH": "ah",
    "{1} [O.S. {3} {2}]< {4}>": "oldstyledatedy", "{1}< {2}> [O.S. {3}]": "oldstyledate",
    "{1}< ± {2}>< × 10^{e}>< {u|ul}>": "val", "×10^{1}": "e|10^|x10^",
    "<{m} m><{cm} cm><{ft} ft>< {in} in>": "height",
    "US${1}": "us$|usd", "£{1}": "gbp|£|pound sterling", "€{1}": "eur|€|euro",
    "₹{1}": "inr|₹|indian rupee|indian rupees", "¥{1}": "jpy|¥|cny|rmb",
    "₩{1}": "krw|₩", "A${1}": "aud|a$", "C${1}": "cad|c$|can$", "NZ${1}": "nzd|nz$",
    "₱{1}": "php|₱|philippine peso", "₽{1}": "rub|₽", "Rs {1}": "pkr|npr|lkr",
    # Names and references in the text.
    "{1} {2}": "sortname|ship|jct|unité|nombre|tmp|bibleverse|bibleref|bibleref2|bible verse",
    "{1}-class {2}": "sclass|sclass-|sclass2|sclass2-", "{1} § {2}": "section link|slink",
    "Quran {1}:{2}": "qref|cite quran|quran-usc", "ISBN {1}": "isbn|isbnt", "OCLC {1}": "oclc",
}  # fmt: skip
_SHIPS = "hms|uss|ss|rms|mv|ms|hmas|hmcs|hmnzs|sms|usns|uscgc|usat|rfa|hmt|hmhs|hnlms|css|rv"
_UNSEEN = (
    r"#tag:ref|cite( .*)?|citation|cref.*|cn|fact|sfn.*|efn.*|refn?|ref .*|r|rp|note.*|nb|fn"
    r"|.* needed|.*(verif|clarif|dubious|disput|disambig|unreliable|original research|vague|weasel"
    r"|peacock|better source|nonspecific|category|commons|infobox).*|.*icon|.*stub|hys|haveyoursay"
    r"|who|whom|by whom|when|which|where|why|how|what|dn|or|pov|npov|ambiguous|dead link|deadlink"
    r"|webarchive|cbignore|clear.*|clr|-|0|br|break|pagebreak|flag(icon|deco).*|increase|decrease"
    r"|steady|use .*|portal.*|main|main article|see also|further.*|subscription.*|registration.*"
    r"|(open|closed|free) access|in lang|.*/color|party color.*|colorbox|legend.*|hs|dtsh|ntsh"
    r"|(div )?col(umns)?[ -].*|anchors?|end|.*[ -](begin|start|end)|defaultsort:.*|displaytitle:.*"
)
# Results of a computation, which are not known.
_COMPUTED = re.compile(r"(current|local|number|page|full|base|site|inflation|age|years|pop).*|#.*")
_LANGUAGES = {
    "ar": "Arabic", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan",
    "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "ga": "Irish", "gd": "Scottish Gaelic", "gr": "Greek", "grc": "Ancient Greek", "gre": "Greek",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian",
    "kk": "Kazakh", "ko": "Korean", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian",
    "mk": "Macedonian", "ms": "Malay", "nl": "Dutch", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sa": "Sanskrit", "sk": "Slovak",
    "sl": "Slovene", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "ta": "Tamil",
    "te": "Telugu", "th": "Thai", "tr": "Turkish",  # codespell:ignore te
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "yi": "Yiddish", "zh": "Chinese",
}  # fmt: skip
_SCRIPTS = {
    "c": "Chinese", "s": "simplified Chinese", "t": "traditional Chinese", "p": "pinyin",
    "w": "Wade–Giles", "j": "Jyutping", "hangul": "Korean", "hanja": "Hanja", "rr": "RR",
    "mr": "MR",
}  # fmt: skip
_UNITS = {
    "mi": "miles", "ft": "feet", "in": "inches", "yd": "yards", "sqmi": "square miles",
    "sqft": "square feet", "acre": "acres", "lb": "pounds", "oz": "ounces", "mph": "miles per hour",
    "nmi": "nautical miles", "km": "kilometres", "m": "metres", "cm": "centimetres",
    "mm": "millimetres", "km2": "square kilometres", "sqkm": "square kilometres",
    "m2": "square metres", "ha": "hectares", "kg": "kilograms", "t": "tonnes", "kn": "knots",
    "LT": "long tons", "ST": "short tons", "C": "°C", "F": "°F",
}  # fmt: skip
_SHORT_UNITS = {"sqmi": "sq mi", "sqft": "sq ft", "sqkm": "km2", "C": "°C", "F": "°F"}
_SMALLER_UNITS = {"ft": ("in",), "mi": ("yd", "ft"), "lb": ("oz",), "st": ("lb",), "yd": ("ft",)}
_BETWEEN = {
    "-": "–", "–": "–", "&ndash;": "–", "to(-)": " to ", "x": " × ", "*": " × ", "xx": " × ",
    "×": " × ", "+/-": " ± ", "±": " ± ", ",": ", ", "to": " to ", "and": " and ",
    "or": " or ", "by": " by ",
}  # fmt: skip
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_AMOUNTS = {"k": " thousand", "l": " lakh", "m": " million", "c": " crore", "b": " billion"}
_NO_SOUNDS = ("lang", "local", "pron", "also", "uk", "us", "audio", "ipa")
_MAX_DIGITS = 15  # of a number; int() takes quadratic time
# characters
_MAX_NAME = 100
_MAX_GUESS = 200
_NAMED = re.compile(r"\s*([a-zA-Z][\w -]{0,40}|[1-9])\s*=")
_SLOT = re.compile(r"\{([^{}]+)\}")
_PART = re.compile(r"<([^<>]*)>")
_COORDINATE = re.compile(r"[NSEW]|[-−]?\d{1,3}(?:\.\d+)?")
_SUM = re.compile(r"#expr:\s*(\d{1,9})\s*([+-])\s*(\d{1,9})\s*")


@dataclass(frozen=True)
class Call:
    """A call of a template: its name in lower case, and its arguments."""

    name: str
    unnamed: list[str]
    named: dict[str, str]

    def get(self, key: str) -> str:
        """Return the argument of a name or a number (-1 is the last), or an empty text."""
        if not key.lstrip("-").isdigit():
            return self.named.get(key, "")
        place = int(key) - (int(key) > 0)
        return self.unnamed[place] if self.unnamed and place < len(self.unnamed) else ""


def render(inner: str, shown: frozenset[str]) -> str:
    """Return what a template shows; ``inner`` is its text between the braces, already read.

    ``shown`` are names of templates that show their last unnamed argument. The result may have
    marks of gaps (``wiki_gaps``).
    """
    call = _call(inner)
    if call.name in shown:
        return protect(call.get("-1"))
    make = _maker(call.name[:_MAX_NAME])
    if make:
        return protect(make(call))
    # An unknown template with an argument ``date`` is a tag that asks for a cleanup.
    return GONE if "date" in call.named else unknown(_guess(inner.strip(), call))


@functools.lru_cache(maxsize=4096)
def _maker(name: str) -> Callable[[Call], str] | None:
    pattern = _BY_NAME.get(name)
    if pattern is not None:
        return functools.partial(_filled, pattern)
    return next((make for names, make in _MADE if names.fullmatch(name)), None)


def _call(inner: str) -> Call:
    """Parse the text between a template's braces."""
    name, *arguments = inner.split("|")
    unnamed: list[str] = []
    named: dict[str, str] = {}
    for argument in arguments:
        found = _NAMED.match(argument)
        if found:
            named[found[1].strip().lower()] = argument[found.end() :].strip()
        else:
            unnamed.append(argument.strip())
    numbers = sorted(filter(str.isdigit, named), key=int) if named else []
    for key in numbers:  # {{quote|1=...}} is {{quote|...}}
        unnamed[int(key) - 1 : int(key)] = [named.pop(key)]
    return Call(" ".join(strip_marks(name).lower().replace("_", " ").split()), unnamed, named)


def _filled(pattern: str, call: Call) -> str:
    """Return a pattern with the arguments of a call in its slots, without empty optional parts."""

    def argument(slot: re.Match[str]) -> str:
        return next(filter(None, map(call.get, slot[1].split("|"))), GONE)

    # Parts are told apart before any argument is put in, as arguments may hold such signs, too.
    text = ""
    for number, piece in enumerate(_PART.split(pattern)):
        is_optional = number % 2 == 1
        if is_optional and all(argument(slot) == GONE for slot in _SLOT.finditer(piece)):
            continue
        text += _SLOT.sub(argument, piece)
    return text


def _guess(inner: str, call: Call) -> str:
    """Return what an unknown template may show: the name of a country, or the only argument."""
    if _COMPUTED.fullmatch(call.name):
        return ""
    if not call.unnamed and not call.named:
        # The name of a country shows the country.
        words = inner.split()
        return inner if all(word.isalpha() and word[0].isupper() for word in words) else ""
    guess = call.get("1") if len(call.unnamed) == 1 else ""
    is_text = len(guess) <= _MAX_GUESS and any(map(str.isalnum, guess)) and "://" not in guess
    return guess if is_text else ""


def _convert(call: Call) -> str:
    """Return a measure as it was given, with its unit: ``{{convert|3|to|5|km|mi}}``."""
    values = call.unnamed
    place = 1
    amount = _grouped(call.get("1"))
    while place + 1 < len(values) and values[place] in _BETWEEN:
        amount += _BETWEEN[values[place]] + _grouped(values[place + 1])
        place += 2
    unit, smaller_amount, smaller_unit = [*values[place:], "", "", ""][:3]
    if smaller_unit in _SMALLER_UNITS.get(unit, ()) and smaller_amount[:1].isdecimal():
        return f"{amount} {unit} {smaller_amount} {smaller_unit}"
    is_adjective = call.get("adj") not in ("", "off", "no")
    if call.get("abbr") in ("on", "in") or call.name == "cvt":
        words = _SHORT_UNITS.get(unit, unit)
    else:
        words = _UNITS.get(unit, unit)
        if unit in _UNITS and (is_adjective or amount == "1"):
            words = words.replace("feet", "foot").replace("inches", "inch")
            words = words.replace("s per", " per").removesuffix("s")
        if call.get("sp") == "us":
            words = words.replace("metre", "meter")
    words = words.replace(" ", "-") if is_adjective else words
    if words.startswith("/") or not words:
        return amount + words
    return amount + ("-" if is_adjective else " ") + words


def _grouped(number: str) -> str:
    """Return a number with commas between its thousands, as templates show it."""
    sign = "−" if number.startswith(("-", "−")) else ""
    number = number.replace("+", " ") if "/" in number else number  # 1+1/2
    digits, point, rest = number.lstrip("-−").partition(".")
    if digits.isdecimal() and len(digits) <= _MAX_DIGITS:
        digits = f"{int(digits):,}"
    return sign + digits + point + rest


def _from_unit(call: Call) -> str:
    """Return the measure of a template such as ``{{ft to m|100}}``."""
    return _convert(Call("convert", [call.get("1"), call.name.split()[0]], call.named))


def _fraction(call: Call) -> str:
    *whole, upper, lower = ["", "1", *call.unnamed][-3 if len(call.unnamed) > 2 else -2 :]
    return " ".join([*whole, f"{upper}⁄{lower}"])


def _date(call: Call) -> str:
    """Return a date of year, month and day, or else the first argument."""
    numbers = itertools.takewhile(re.compile(r"\d{1,4}").fullmatch, call.unnamed)
    year, month, day = [*map(int, numbers), 0, 0, 0][:3]
    if not year:
        return call.get("1")
    if not 1 <= month <= len(_MONTHS):
        return str(year)
    name = _MONTHS[month - 1]
    if not day:
        return f"{name} {year}"
    is_day_first = call.get("df").startswith(("y", "1", "d"))
    return f"{day} {name} {year}" if is_day_first else f"{name} {day}, {year}"


def _words(call: Call) -> str:
    """Return all words: ``{{date|3|octobre|1990}}``. A date alone on a line is not shown."""
    return unknown(" ".join(call.unnamed))


def _as_of(call: Call) -> str:
    words = "since" if call.get("since") else "as of"
    words = words if call.get("lc")[:1] == "y" else words.capitalize()
    day_first = "no" if call.get("df").lower() == "us" else "yes"
    return call.get("alt") or f"{words} {_date(Call('date', call.unnamed, {'df': day_first}))}"


def _coordinates(call: Call) -> str:
    """Return coordinates with signs of degrees, minutes and seconds; nothing if not in the text."""
    if call.get("display") in ("title", "t"):
        return GONE
    values = list(itertools.takewhile(_COORDINATE.fullmatch, call.unnamed))
    if len(values) == 2:  # decimal degrees, negative in the south and west
        poles = ("S" if values[0][0] in "-−" else "N", "W" if values[1][0] in "-−" else "E")
        values = [values[0].strip("-−"), poles[0], values[1].strip("-−"), poles[1]]
    text = ""
    signs = iter("°′″")
    for value in values:
        if value.isalpha():
            text = f"{text}{value} "
            signs = iter("°′″")
        else:
            text += value + next(signs, "")
    return inline(text)


def _language(call: Call) -> str:
    """Return a text after the name of its language: ``{{lang-ru|...}}``, ``{{langx|ru|...}}``."""
    code = call.name.partition("-")[2] or call.get("1")
    unnamed = call.unnamed[1:] if call.name == "langx" else call.unnamed
    if not unnamed:  # {{lang-zh|t=...}}
        return _scripts(call)
    label = "" if call.get("label") == "none" else _LANGUAGES.get(code, "")
    named = {**call.named, "label": label}
    return _filled("<{label}: >{1}<, {translit|2}><, lit. '{lit|3}'>", Call("", unnamed, named))


def _scripts(call: Call) -> str:
    """Return a text in several scripts: ``{{zh|t=...|s=...|p=...}}``, ``{{korean|hangul=...}}``."""
    named = [f"{label}: {call.get(key)}" for key, label in _SCRIPTS.items() if call.get(key)]
    return "; ".join([*call.unnamed[:1], *named])


def _sounds(call: Call) -> str:
    """Return a pronunciation: ``{{IPA|sv|ˈɔrːɛl}}``, ``{{IPA-ru|...}}``, ``{{IPAc-en|t|ə}}``."""
    if call.name.startswith("ipac-"):
        sounds = "".join(each for each in call.unnamed if each.lower() not in _NO_SOUNDS)
        return inline(f"/{sounds}/".replace("_", " "))
    sounds = call.get("2" if call.name == "ipa" and len(call.unnamed) > 1 else "1")
    return inline(sounds if sounds.startswith(("/", "[")) else f"[{sounds}]")


def _harvard(call: Call) -> str:
    """Return author and year. Such a reference is often a footnote, and sometimes a word."""
    *names, year = [*call.unnamed, ""] if len(call.unnamed) == 1 else call.unnamed or ["", ""]
    return unknown(" & ".join(names) + (f" ({year})" if "txt" in call.name else f" {year}"))


def _as_in_source(call: Call) -> str:
    words = "".join(call.unnamed[:2])
    return words if call.get("hide") else f"{words} [sic]".strip()


def _function(call: Call) -> str:
    """Return the result of a function of the wiki, such as ``{{formatnum:1234}}``."""
    name, _, value = call.name.partition(":")
    if name == "formatnum":
        return _grouped(value)
    found = _SUM.fullmatch(call.name)
    if found:
        return str(int(found[1]) + int(found[2] + found[3]))
    return unknown()


_BY_NAME: dict[str, str] = {
    name: pattern for pattern, names in _PATTERNS.items() for name in names.split("|")
}
_MADE: tuple[tuple[re.Pattern[str], Callable[[Call], str]], ...] = tuple(
    (re.compile(names), make)
    for names, make in (
        ("convert|cvt|conv", _convert),
        (r"(ft|mi|km|m|in|cm|kg|lb|ha|acres?|nmi) to \w+", _from_unit),
        ("s?frac|fraction|tfrac", _fraction),
        ("(start|end|film|birth|death)[- ](date|year).*|bda|dda|dob|dts", _date),
        ("as of|asof", _as_of),
        ("date-?|date de (naissance|décès)|heure|currency", _words),
        ("coord|coords", _coordinates),
        ("zh|zh-.*|korean|ko-.*", _scripts),
        ("lang-.*|langx", _language),
        ("ipac?(-.*)?", _sounds),
        ("sic!?", _as_in_source),
        ("translated quote", lambda call: '"{}"'.format(call.get("-1").strip('"“”'))),
        ("respell|respelling", lambda call: "-".join(call.unnamed)),
        ("script/.*", lambda call: call.get("1")),
        ("harv.*", _harvard),
        (_SHIPS, lambda call: f"{call.name.upper()} {call.get('1')}"),
        ("inrconvert", lambda call: f"₹{call.get('1')}{_AMOUNTS.get(call.get('2'), '')}"),
        ("music", lambda call: _BY_NAME.get(call.get("1"), call.get("1"))),
        ("tmath", lambda call: inline(f"${call.get('1')}$")),
        ("hlist|comma separated entries|post-?nom.*", lambda call: ", ".join(call.unnamed)),
        ("gaps", lambda call: " ".join(call.unnamed)),
        ("ubl|ublist|unbulleted list|(un)?ordered list|bulleted list|br separated entries",
         lambda call: "\n".join(call.unnamed)),
        ("chem|linktext|chem name|not ?a ?typo|as written", lambda call: "".join(call.unnamed)),
        ("(formatnum|#expr):.*", _function),
        (_UNSEEN, lambda _: GONE),
    )
)  # fmt: skip
