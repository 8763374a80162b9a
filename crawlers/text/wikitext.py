"""Conversion of wikitext to plain text, in time linear in the length of the page.

Wiki pages are untrusted and must not stall the parser. mwparserfromhell 0.7.2 needs 1.2 s for 6 kB
of ``''''</ref><ref>`` repeated, and eight times as long for twice the length. This scanner reads
each character a bounded number of times, and rejects unclosed or deeply nested markup. On ordinary
articles, both parsers agree on the text (tests/crawlers/text/test_wikitext.py).

The text has prose, list items and headings, each heading on a line of its own. Comments, footnotes,
templates, tables, files, categories, formulas, and sections without prose are removed. Templates
are not expanded, so the number inside ``{{convert}}`` is lost.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from core.errors import ItemUnavailable

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
_KEPT_AS_TYPED = frozenset({"nowiki", "pre"})
_DROPPED_ELEMENTS = frozenset({
    "ref", "references", "gallery", "math", "chem", "ce", "timeline", "score", "syntaxhighlight",
    "source", "graph", "hiero", "imagemap", "mapframe", "maplink", "templatedata", "inputbox",
    "categorytree", "templatestyles", "style", "script",
})  # fmt: skip
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_REDIRECT = re.compile(rf"\s*#\s*(?:{'|'.join(REDIRECTS)})\s*:?\s*\[\[", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?P<open>\{\{\{(?!\{)|\{\{|\[\[|^[ \t:]*\{\||\[(?:https?:|ftp:|mailto:|//)[^\s\[\]<>]*[ \t]*)"
    r"|(?P<close>^[ \t]*\|\}(?!\})|\}\}|\]\]|\])"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)(?:\s[^<>]*)?/?>"
    r"|(?P<gone>'''''|'''|''|__[A-Z]{3,30}__)"
    r"|(?P<break>\n[ \t]*\n)",
    re.MULTILINE,
)
_NAMED = re.compile(r"\s*[a-zA-Z][\w -]{0,40}=")
_END_TAG = re.compile(r"</([a-zA-Z]+)")
_OPENED_BY = {"}}": "{", "]]": "[[", "]": "[", "|}": "{|"}


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
    text = _Scanner(_COMMENT.sub("", wikitext), shown_templates).scan()
    lines = (line.strip() for line in html.unescape(text).replace("\xa0", " ").split("\n"))
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
        self.source, self.shown_templates = source, shown_templates
        self.last_end = {end[1].lower(): end.start() for end in _END_TAG.finditer(source)}
        self.out: list[str] = []
        self.open: list[tuple[str, int]] = []  # kinds of open marks, with their index in ``out``
        self.num_open: Counter[str] = Counter()

    def scan(self) -> str:
        position = 0
        while match := _TOKEN.search(self.source, position):
            self.out.append(self.source[position : match.start()])
            position = self._take(match)
        self.out.append(self.source[position:])
        for kind in ("{", "{|"):
            if self.num_open[kind]:
                raise _parse_error(f"{self.num_open[kind]} times {kind} without its end")
        return "".join(self.out)

    def _take(self, match: re.Match[str]) -> int:
        """Handle one piece of markup; return the position after it."""
        if match["open"]:
            self._push(match["open"])
        elif match["close"]:
            return self._close(match)
        elif match["name"]:
            return self._element(match)
        elif match["break"]:
            self._forget_links()
            self.out.append(match["break"])
        return match.end()

    def _push(self, mark: str) -> None:
        if len(self.open) == MAX_NESTING:
            raise _parse_error(f"nested more than {MAX_NESTING} deep")
        mark = mark.lstrip(" \t:")
        kind = mark if mark in ("[[", "{|") else mark[0]
        self.open.append((kind, len(self.out)))
        self.num_open[kind] += 1
        self.out.append(mark)

    def _close(self, match: re.Match[str]) -> int:
        mark = match["close"].strip()
        if mark == "]]" and self.open and self.open[-1][0] == "[":
            mark = "]"
        kind = _OPENED_BY[mark]
        if not self.num_open[kind]:
            self.out.append(match["close"])
            return match.end()
        while (top := self.open.pop())[0] != kind:
            self.num_open[top[0]] -= 1
        self.num_open[kind] -= 1
        opening, inner = self.out[top[1]], "".join(self.out[top[1] + 1 :])
        del self.out[top[1] :]
        if kind == "[[":
            self.out.append(_link_text(inner))
        elif kind == "[":
            self.out.append(inner)
        elif opening == "{{" and self.shown_templates:
            self.out.append(_template_text(inner, self.shown_templates))
        end = match.end() - (match["close"] == "]]" and mark == "]")
        return end + (opening == "{{{" and self.source.startswith("}", end))

    def _forget_links(self) -> None:
        """Keep open links as plain text, because a link must end in its paragraph."""
        while self.open and self.open[-1][0] in ("[", "[["):
            self.num_open[self.open.pop()[0]] -= 1

    def _element(self, match: re.Match[str]) -> int:
        """Handle a tag, or skip its whole content; return the position after the handled part."""
        name = match["name"].lower()
        if name == "br":
            self.out.append("\n")
        is_empty = match["end"] or match[0].endswith("/>")
        if is_empty or name not in _DROPPED_ELEMENTS | _KEPT_AS_TYPED:
            return match.end()
        if (end := self._end_of(name, match.end())) is None:
            return match.end()  # MediaWiki shows the text after an unclosed tag
        if name in _KEPT_AS_TYPED:
            self.out.append(self.source[match.end() : end])
        return end

    def _end_of(self, name: str, position: int) -> int | None:
        if position > self.last_end.get(name, -1):
            return None
        match = re.compile(rf"</{name}(?![a-zA-Z])", re.IGNORECASE).search(self.source, position)
        return match.start() if match else None


def _link_text(inner: str) -> str:
    target, _, label = inner.partition("|")
    if target.partition(":")[0].strip().lower() in HIDDEN_NAMESPACES:
        return ""
    return label or target.strip().removeprefix(":")


def _template_text(inner: str, shown: frozenset[str]) -> str:
    name, *arguments = inner.split("|")
    unnamed = [argument for argument in arguments if not _NAMED.match(argument)]
    return unnamed[-1].strip() if unnamed and name.strip().lower() in shown else ""


def _prose_lines(lines: Iterable[str], closing: frozenset[str]) -> Iterator[str]:
    dropped_level = 0  # heading level of the excluded section, or 0
    for line in lines:
        level = _heading_level(line)
        if level:
            title = line[level:-level].strip()
            if not dropped_level or level <= dropped_level:
                dropped_level = level if title.lower() in closing else 0
            if not dropped_level:
                yield from ("", title, "")
        elif not dropped_level:
            yield "" if line.startswith("----") else line.lstrip("*#:; \t")


def _heading_level(line: str) -> int:
    if len(line) < 3 or line[0] != "=" or line[-1] != "=":
        return 0
    ahead, behind = (len(line) - len(part) for part in (line.lstrip("="), line.rstrip("=")))
    return min(ahead, behind, 6, (len(line) - 1) // 2)
