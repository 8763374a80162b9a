"""Conversion of wikitext to plain text, in time linear in the length of the page.

Wiki pages are untrusted and must not stall the parser. mwparserfromhell 0.7.2 needs 1.2 s for 6 kB
of ``''''</ref><ref>`` repeated, and eight times as long for twice the length. This scanner reads
each character a bounded number of times, and rejects unclosed or deeply nested markup. On ordinary
articles, both parsers agree on the text (tests/crawlers/text/test_wikitext.py).

The text has prose, list items and headings, each heading on a line of its own. Comments, footnotes,
tables, files, categories, and sections without prose are removed. Formulas stay as LaTeX in
``$…$``. Templates that show their arguments are rendered (``wiki_templates``). A sentence that
lacks the words of another template is dropped (``wiki_gaps``).
"""

from __future__ import annotations

import functools
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from core.errors import ItemUnavailable
from crawlers.text import wiki_templates
from crawlers.text.wiki_gaps import GONE, HOLE, fill, inline, protect, strip_marks

# Templates of Wikinews that show a name; the others are known to wiki_templates.
WIKINEWS_TEMPLATES = frozenset({"w", "wikipedia"})
# Titles of sections without prose by language, in lower case, without the marks of a heading.
CLOSING_SECTIONS: dict[str, tuple[str, ...]] = {
    "en": (
        "references", "notes", "notes and references", "references and notes", "footnotes",
        "citations", "sources", "works cited", "bibliography", "further reading", "external links",
        "see also", "related news", "related stories", "related articles", "sister links",
    ),
    "de": (
        "literatur", "einzelnachweise", "weblinks", "siehe auch", "quellen", "anmerkungen",
        "fußnoten", "belege", "anmerkungen und einzelnachweise", "einzelnachweise und anmerkungen",
        "themenverwandte artikel",
    ),
    "fr": (
        "références", "notes et références", "notes", "voir aussi", "articles connexes",
        "liens externes", "lien externe", "bibliographie", "sources", "annexes",
    ),
    "es": (
        "referencias", "notas", "notas y referencias", "bibliografía", "enlaces externos",
        "véase también", "fuentes",
    ),
    "it": (
        "note", "bibliografia", "voci correlate", "altri progetti", "collegamenti esterni", "fonti",
    ),
    "pt": (
        "referências", "notas", "notas e referências", "bibliografia", "ligações externas",
        "ver também", "fontes",
    ),
    "nl": (
        "referenties", "bronnen", "noten", "bronnen, noten en/of referenties", "literatuur",
        "externe links", "externe link", "zie ook",
    ),
    "pl": ("przypisy", "uwagi", "bibliografia", "linki zewnętrzne", "zobacz też", "źródła"),
    "sv": (
        "referenser", "noter", "källor", "externa länkar", "litteratur", "se även",
        "vidare läsning",
    ),
    "ru": ("примечания", "литература", "ссылки", "источники", "см. также", "комментарии"),
}  # fmt: skip

# Links to these namespaces (files, categories) show no text. English names work in all languages.
HIDDEN_NAMESPACES = frozenset({
    "file", "image", "media", "category", "datei", "bild", "kategorie", "fichier", "catégorie",
    "archivo", "imagen", "categoría", "immagine", "categoria", "ficheiro", "imagem", "bestand",
    "afbeelding", "categorie", "plik", "grafika", "kategoria", "fil", "kategori", "файл",
    "изображение", "категория",
})  # fmt: skip
REDIRECTS = (
    "redirect", "weiterleitung", "redirection", "redirección", "rinvia", "redirecionamento",
    "doorverwijzing", "przekieruj", "patrz", "tam", "omdirigering", "перенаправление",
)  # fmt: skip


MAX_CHARS = 2 * 2**20  # of a page; MediaWiki's limit in bytes ($wgMaxArticleSize)
MAX_NESTING = 100  # MediaWiki's limit for nested templates ($wgMaxTemplateDepth)
_MAX_LEVEL = 6  # of a heading
_MAX_REMEMBERED = 50  # characters of a template; short ones are repeated
_KEPT_AS_TYPED = frozenset({"nowiki", "pre"})
_KEPT_IN_SENTENCES = frozenset({"math", "chem", "ce", "syntaxhighlight", "source"})
_DROPPED_ELEMENTS = frozenset({
    "ref", "references", "gallery", "timeline", "score", "graph", "hiero", "imagemap", "mapframe",
    "maplink", "templatedata", "inputbox", "categorytree", "templatestyles", "style", "script",
    "includeonly", "indicator", "table",
})  # fmt: skip
# Tags that begin a line: of elements with a line of their own, of items, and the ends of lists.
_BREAKS = re.compile(
    r"/?(?:br|p|div|center|blockquote|hr|poem|h[1-6])|li|dt|dd|/(?:ul|ol|dl)", re.IGNORECASE
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_REDIRECT = re.compile(rf"\s*#\s*(?:{'|'.join(REDIRECTS)})\s*:?\s*\[\[", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?P<open>\{\{\{(?!\{)|\{\{|\[\[|^[ \t:]*\{\||\[(?:https?:|ftp:|mailto:|//)[^\s\[\]<>]*[ \t]*)"
    r"|(?P<close>^[ \t]*\|\}(?!\})|\}\}|\]\]|\])"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)(?:\s[^<>]*)?/?>"
    r"|(?P<gone>__[A-Z]{3,30}__)"
    r"|(?P<break>\n[ \t]*\n)",
    re.MULTILINE,
)
_NO_NUMBER = re.compile(r"&(?=#[0-9]{1000})")  # too long for int()
_SPACES = re.compile("[ \t\xa0]{2,}|[\t\xa0]")
# A space that an author typed before a comma or full stop looks like a hole.
_SLIP = re.compile(r"(?<=[\w)\]\"”’]) (?=[,.](?:$|\ufdd0| (?!\.)))", re.MULTILINE)
_QUOTES = re.compile("('{2,})")
_POSSESSIVE = re.compile(r"s\b")
_TO_ANOTHER_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]{2,20})?:(?!//)")
_END_TAG = re.compile(r"</([a-zA-Z]+)")
_OPENED_BY = {"}}": "{", "]]": "[[", "]": "[", "|}": "{|"}
_KINDS = {"{{": "{", "{{{": "{", "[[": "[["}  # kinds of the marks that are frequent
_READ_ELEMENTS = _DROPPED_ELEMENTS | _KEPT_IN_SENTENCES | _KEPT_AS_TYPED


def is_redirect(wikitext: str) -> bool:
    """Return True if a page is a redirect."""
    return _REDIRECT.match(wikitext) is not None


def to_text(
    wikitext: str, language: str = "en", shown_templates: frozenset[str] = frozenset()
) -> str:
    """Return the prose of a page: paragraphs, list items and headings between blank lines.

    ``language`` is the language of the wiki; it selects the titles of sections to remove.
    ``shown_templates`` are lower-case names of templates that show their last unnamed argument, as
    Wikinews' ``{{w|Lake Geneva|the lake}}`` does. Raise ItemUnavailable (``parse_error``) if the
    page is too long, is nested too deep, or has an unclosed template or table.
    """
    if len(wikitext) > MAX_CHARS:
        raise _parse_error(f"longer than {MAX_CHARS} characters")
    text = _Scanner(strip_marks(_COMMENT.sub("", wikitext)), shown_templates).scan()
    text = "\n".join(map(_without_quotes, text.split("\n")))
    text = _SPACES.sub(" ", html.unescape(_NO_NUMBER.sub("", text)))
    text = _SLIP.sub("", text)
    filled = ((line.strip(), fill(line.strip()).strip()) for line in text.split("\n"))
    # A line whose only content is gone is no break between paragraphs.
    lines = (shown for line, shown in filled if shown or not line)
    closing = frozenset({*CLOSING_SECTIONS["en"], *CLOSING_SECTIONS.get(language, ())})
    prose = _prose_lines(lines, closing)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()


def _parse_error(what: str) -> ItemUnavailable:
    return ItemUnavailable("parse_error", f"wikitext: {what}")


class _Scanner:
    """Scanner that reads a page once, with a stack of open marks such as ``{{`` and ``[[``.

    ``out`` is the text so far, including open marks. When a mark is closed, the text to show
    replaces it and all text after it. A mark that is never closed stays in the text.
    """

    def __init__(self, source: str, shown_templates: frozenset[str]) -> None:
        self.source = source
        self.shown_templates = shown_templates
        self.last_end = {end[1].lower(): end.start() for end in _END_TAG.finditer(source)}
        self.out: list[str] = []
        self.open: list[tuple[str, int]] = []  # kinds of open marks, with their index in ``out``
        self.num_open: Counter[str] = Counter()

    def scan(self) -> str:
        position = 0
        while match := _TOKEN.search(self.source, position):
            if match.start() > position:
                self.out.append(self.source[position : match.start()])
            position = self._take(match)
        self.out.append(self.source[position:])
        self._forget_links()
        for kind in ("{", "{|"):
            if self.num_open[kind]:
                raise _parse_error(f"{self.num_open[kind]} times {kind} without its end")
        return "".join(self.out)

    def _take(self, match: re.Match[str]) -> int:
        """Handle one piece of markup; return the position after it."""
        kind = match.lastgroup
        if kind == "open":
            self._push(match[0])
        elif kind == "close":
            return self._close(match)
        elif kind == "name":
            return self._element(match)
        elif kind == "break":
            self._forget_links()
            self.out.append(match[0])
        return match.end()

    def _push(self, mark: str) -> None:
        """Put an opening mark on the stack."""
        if len(self.open) == MAX_NESTING:
            raise _parse_error(f"nested more than {MAX_NESTING} deep")
        kind = _KINDS.get(mark)
        if kind is None:
            mark = mark.lstrip(" \t:")
            kind = "{|" if mark == "{|" else "["
        self.open.append((kind, len(self.out)))
        self.num_open[kind] += 1
        self.out.append(mark)

    def _close(self, match: re.Match[str]) -> int:
        """Replace an open mark and the text after it by what they show; return where to go on."""
        mark = match["close"].strip()
        if mark == "]]" and self.open and self.open[-1][0] == "[":
            mark = "]"
        kind = _OPENED_BY[mark]
        if not self.num_open[kind]:
            # The text before "}}" was an argument of a template, not prose.
            self.out.append({"}}": HOLE, "]": "]"}.get(mark, GONE))
            return match.end()
        # Marks that were opened later were never closed.
        while self.open[-1][0] != kind:
            self.out[self._pop()] = GONE
        place = self._pop()
        opening = self.out[place]
        inner = "".join(self.out[place + 1 :])
        del self.out[place:]
        if kind == "[[":
            self.out.append(_link_text(inner))
        elif kind == "[":
            self.out.append(inner or GONE)
        elif opening == "{{":
            self.out.append(_shown_template(inner, self.shown_templates))
        # A single "[" was closed, so the second "]" is read again; "{{{" takes a third brace.
        end = match.end() - (match["close"] == "]]" and mark == "]")
        return end + (opening == "{{{" and self.source.startswith("}", end))

    def _forget_links(self) -> None:
        """Take open links as plain text, because a link must end in its paragraph."""
        while self.open and self.open[-1][0] in ("[", "[["):
            self.out[self._pop()] = GONE

    def _pop(self) -> int:
        kind, place = self.open.pop()
        self.num_open[kind] -= 1
        return place

    def _element(self, match: re.Match[str]) -> int:
        """Handle a tag, or skip its whole content; return the position after the handled part."""
        name = match["name"].lower()
        if _BREAKS.fullmatch(match["end"] + name):
            self.out.append("\n")
        if match["end"] or name not in _READ_ELEMENTS:
            return match.end()
        end = None if match[0].endswith("/>") else self._end_of(name, match.end())
        content = self.source[match.end() : end] if end is not None else ""
        # MediaWiki shows the text after an unclosed tag.
        self.out.append(_shown_content(name, content))
        return match.end() if end is None else end

    def _end_of(self, name: str, position: int) -> int | None:
        """Return where the content of an element ends; None if it is not closed."""
        if position > self.last_end.get(name, -1):
            return None
        match = re.compile(rf"</{name}(?![a-zA-Z])", re.IGNORECASE).search(self.source, position)
        return match.start() if match else None


def _shown_template(inner: str, shown: frozenset[str]) -> str:
    if len(inner) <= _MAX_REMEMBERED:
        return _remembered_template(inner, shown)
    return wiki_templates.render(inner, shown)


@functools.lru_cache(maxsize=4096)
def _remembered_template(inner: str, shown: frozenset[str]) -> str:
    return wiki_templates.render(inner, shown)


def _shown_content(name: str, content: str) -> str:
    """Return what is shown of the content of an element that is not read as wikitext."""
    if name in _KEPT_AS_TYPED:
        return protect(content.replace("'", "&#39;")) or GONE
    if name in _KEPT_IN_SENTENCES and content:
        content = " ".join(content.replace("'", "&#39;").split())
        # Doubled braces would look like a template.
        content = content.replace("{{", "{ {").replace("}}", "} }")
        return inline(f"${content}$" if name == "math" else content)
    return GONE


def _link_text(inner: str) -> str:
    """Return what a link shows; links to files, categories and other languages show nothing."""
    target, pipe, label = inner.partition("|")
    target = target.strip()
    is_sidebar = not pipe and _TO_ANOTHER_LANGUAGE.match(target)
    if is_sidebar or target.partition(":")[0].strip().lower() in HIDDEN_NAMESPACES:
        return GONE
    return protect(label or target.removeprefix(":"))


def _without_quotes(line: str) -> str:
    """Return a line without marks of italic type (two quotes), bold type (three) and both (five).

    Longer marks have apostrophes before them. ``''Star'''s`` has one, too: after italic type, and
    before an s. A line may leave both types open. Then, as in MediaWiki, the first likely mark of
    bold type is an apostrophe and a mark of italic type.
    """
    if "''" not in line:
        return line
    parts = _QUOTES.split(line)
    texts = parts[::2]
    sizes = [len(mark) for mark in parts[1::2]]
    is_italic = is_bold = False
    apostrophes = []  # number of apostrophes that remain of each mark
    for place, size in enumerate(sizes):
        sizes[place] = 3 if size == 4 else min(size, 5)
        ends_italic = size == 3 and is_italic and not is_bold and texts[place][-1:].isalnum()
        if ends_italic and _POSSESSIVE.match(texts[place + 1]):
            sizes[place] = 2
        apostrophes.append(size - sizes[place])
        is_italic ^= sizes[place] != 3
        is_bold ^= sizes[place] != 2
    if is_italic and is_bold and 3 in sizes:
        bold = (place for place, size in enumerate(sizes) if size == 3)
        apostrophes[min(bold, key=lambda place: _rank_of_word(texts[place]))] += 1
    return texts[0] + "".join(
        "'" * num + text for num, text in zip(apostrophes, texts[1:], strict=True)
    )


def _rank_of_word(before: str) -> int:
    """Return how likely an apostrophe follows: 0 after a single letter, 1 after a word, else 2."""
    if before.endswith(" "):
        return 2
    return 0 if before[-2:-1] == " " else 1


def _prose_lines(lines: Iterable[str], closing: frozenset[str]) -> Iterator[str]:
    """Yield lines without the marks of lists and headings, and without the closing sections."""
    dropped_level = 0  # heading level of the excluded section, or 0
    for line in lines:
        level = _heading_level(line)
        if level:
            title = line[level:-level].strip()
            if not dropped_level or level <= dropped_level:
                dropped_level = level if title.lower() in closing else 0
            if not dropped_level:
                yield from ("", title, "")
        elif not dropped_level and not line.startswith("|"):  # a row of a template's table
            prose = "" if line.startswith("----") else line.lstrip("*#:; \t")
            if prose or not line.strip("-"):  # not an item whose template is gone
                yield prose


def _heading_level(line: str) -> int:
    """Return the level (1 to 6) of a heading such as ``== Title ==``; 0 for other lines."""
    if len(line) < 3 or line[0] != "=" or line[-1] != "=":
        return 0
    ahead, behind = (len(line) - len(part) for part in (line.lstrip("="), line.rstrip("=")))
    return min(ahead, behind, _MAX_LEVEL, (len(line) - 1) // 2)
