"""Citations of the site and its pages: BibTeX and CITATION.cff."""

from __future__ import annotations

import json

from reports.site.context import Site

BIBTEX = "citation.bib"
CFF = "CITATION.cff"
TITLE = "How language models age"


def window_of(site: Site) -> str:
    """Return the months with figures, as a part of a title."""
    return "losses on {} to {}".format(*site.window) if site.window else "no months"


def bibtex(site: Site, key: str, title: str, *, is_simulated: bool) -> str:
    """Return a BibTeX entry, in which the characters that TeX reads as commands are escaped."""
    # The entry has an author only if one is stated.
    facts = site.facts
    fields = {
        "author": f"{{{_escaped(facts.author)}}}" if facts.author else "",
        "title": _escaped(title),
        "howpublished": f"tidemark {facts.commit}, snapshot {facts.snapshot_sha256[:12]}",
        "url": facts.address,
        "year": str(facts.built_at.year),
        "note": "simulated text" if is_simulated else "",
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in "{}\\%&#_$" else char for char in text)


def site_bibtex(site: Site) -> str:
    """Return the BibTeX entry of the whole site."""
    title = f"{TITLE}: {window_of(site)}"
    return bibtex(site, "tidemark", title, is_simulated=bool(site.simulated))


def cff(site: Site) -> str:
    """Return the text of CITATION.cff (Citation File Format 1.2.0) for the whole site."""
    # The format requires an author; without a stated one it is the program.
    facts = site.facts
    simulated = " (simulated text)" if site.simulated else ""
    lines = [
        "cff-version: 1.2.0",
        "message: Cite this site as below.",
        "type: dataset",
        f"title: {json.dumps(f'{TITLE}: {window_of(site)}{simulated}')}",
        "authors:",
        f"  - name: {json.dumps(facts.author or 'tidemark', ensure_ascii=False)}",
        f"version: {json.dumps(facts.commit)}",
        f"date-released: {facts.built_at:%Y-%m-%d}",
        *([f"url: {json.dumps(facts.address)}"] if facts.address else []),
        *([f"repository-code: {json.dumps(facts.repository)}"] if facts.repository else []),
        "license: CC0-1.0",
        "identifiers:",
        "  - type: other",
        f'    value: "sha256:{facts.snapshot_sha256}"',
        "    description: SHA-256 of warehouse.duckdb",
    ]
    return "\n".join(lines) + "\n"
