"""Citations of a release: ``CITATION.cff`` for reference managers, ``.zenodo.json`` for Zenodo.

Zenodo reads its file if a release is uploaded from a repository; the keys are those of its API for
deposits (https://developers.zenodo.org/#representation).
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass

from core.month import Month
from core.settings import Settings
from core.version import own_version

CFF = "CITATION.cff"
ZENODO = ".zenodo.json"
_LICENCE = "CC0-1.0"  # of figures, as each page of the site says


@dataclass(frozen=True)
class Cited:
    """A release, as it is cited."""

    month: Month
    digest: str  # SHA-256 of the database
    is_simulated: bool
    author: str | None
    address: str | None  # http:// or https:// address

    @property
    def title(self) -> str:
        """The title; it says if the text is simulated."""
        return f"tidemark release {self.month}{' (simulated text)' if self.is_simulated else ''}"

    @property
    def creator(self) -> str:
        """The stated author; both formats require one, so it is the program without."""
        return self.author or "tidemark"


def cited(settings: Settings, month: Month, digest: str, *, is_simulated: bool) -> Cited:
    """Return what is cited; the address is that of the report, else the operator's page."""
    contact = settings.operator_contact or ""
    page = contact if contact.startswith("https://") else None
    address = settings.report_url or page
    return Cited(month, digest, is_simulated, settings.report_author, address)


def citation_cff(release: Cited, day: dt.date) -> str:
    """Return the text of CITATION.cff (Citation File Format 1.2.0)."""
    lines = [
        "cff-version: 1.2.0",
        "message: Cite this release as below.",
        "type: dataset",
        f"title: {release.title}",
        "authors:",
        f"  - name: {json.dumps(release.creator, ensure_ascii=False)}",
        f'version: "{release.month}"',
        f"date-released: {day}",
        *([f"url: {json.dumps(release.address)}"] if release.address else []),
        "identifiers:",
        "  - type: other",
        f'    value: "sha256:{release.digest}"',
        "    description: SHA-256 of warehouse.duckdb",
    ]
    return "\n".join(lines) + "\n"


def zenodo_json(release: Cited) -> str:
    """Return the text of .zenodo.json; Zenodo dates the record itself."""
    simulated = "A program made up the text. " if release.is_simulated else ""
    description = (
        f"<p>{simulated}Losses of language models on text of every month up to {release.month}, "
        f"made by tidemark {own_version()}.</p>"
        f"<p>SHA-256 of warehouse.duckdb: {release.digest}</p>"
    )
    facts: dict[str, object] = {
        "upload_type": "dataset",
        "title": release.title,
        "description": description,
        "creators": [{"name": _person(release.creator)}],
        "version": str(release.month),
        "access_right": "open",
        "license": _LICENCE.lower(),
        "keywords": ["language models", "evaluation", "temporal generalisation"],
    }
    if release.address:
        related = {"identifier": release.address, "relation": "isDocumentedBy"}
        facts["related_identifiers"] = [related]
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def _person(name: str) -> str:
    """Return a name in which Zenodo finds a family name, which it requires of each creator.

    Zenodo takes a single word for a first name, and refuses the record. It drops text in brackets.
    """
    return name if len(name.split()) > 1 else f"{name}, (one name)"
