"""Words of wikitext that depend on a wiki's language: closing sections, namespaces, redirects.

The sections that hold no prose are known for the languages in ``CLOSING_SECTIONS``; of a wiki in
another language those of English are cut alone. One title a line: two that lack the comma between
them are one that no page has.
"""

from __future__ import annotations

# Lower case, as readers see them: without the marks of a heading.
CLOSING_SECTIONS: dict[str, tuple[str, ...]] = {
    "en": (
        "references",
        "notes",
        "notes and references",
        "references and notes",
        "footnotes",
        "citations",
        "sources",
        "works cited",
        "bibliography",
        "further reading",
        "external links",
        "see also",
        "related news",
        "related stories",
        "related articles",
        "sister links",
    ),
    "de": (
        "literatur",
        "einzelnachweise",
        "weblinks",
        "siehe auch",
        "quellen",
        "anmerkungen",
        "fußnoten",
        "belege",
        "anmerkungen und einzelnachweise",
        "einzelnachweise und anmerkungen",
        "themenverwandte artikel",
    ),
    "fr": (
        "références",
        "notes et références",
        "notes",
        "voir aussi",
        "articles connexes",
        "liens externes",
        "lien externe",
        "bibliographie",
        "sources",
        "annexes",
    ),
    "es": (
        "referencias",
        "notas",
        "notas y referencias",
        "bibliografía",
        "enlaces externos",
        "véase también",
        "fuentes",
    ),
    "it": (
        "note",
        "bibliografia",
        "voci correlate",
        "altri progetti",
        "collegamenti esterni",
        "fonti",
    ),
    "pt": (
        "referências",
        "notas",
        "notas e referências",
        "bibliografia",
        "ligações externas",
        "ver também",
        "fontes",
    ),
    "nl": (
        "referenties",
        "bronnen",
        "noten",
        "bronnen, noten en/of referenties",
        "literatuur",
        "externe links",
        "externe link",
        "zie ook",
    ),
    "pl": (
        "przypisy",
        "uwagi",
        "bibliografia",
        "linki zewnętrzne",
        "zobacz też",
        "źródła",
    ),
    "sv": (
        "referenser",
        "noter",
        "källor",
        "externa länkar",
        "litteratur",
        "se även",
        "vidare läsning",
    ),
    "ru": (
        "примечания",
        "литература",
        "ссылки",
        "источники",
        "см. также",
        "комментарии",
    ),
}  # fmt: skip

# Namespaces whose links show no text in the line: files and categories. English ones work in all.
HIDDEN_NAMESPACES = frozenset({
    "file", "image", "media", "category",
    "datei", "bild", "kategorie",
    "fichier", "catégorie",
    "archivo", "imagen", "categoría",
    "immagine", "categoria",
    "ficheiro", "imagem",
    "bestand", "afbeelding", "categorie",
    "plik", "grafika", "kategoria",
    "fil", "kategori",
    "файл", "изображение", "категория",
})  # fmt: skip

REDIRECTS = (
    "redirect",
    "weiterleitung",
    "redirection",
    "redirección",
    "rinvia",
    "redirecionamento",
    "doorverwijzing",
    "przekieruj",
    "patrz",
    "tam",
    "omdirigering",
    "перенаправление",
)


def closing_sections(language: str) -> frozenset[str]:
    """Return the titles, in lower case, of sections without prose: the language's and English."""
    return frozenset({*CLOSING_SECTIONS["en"], *CLOSING_SECTIONS.get(language, ())})
