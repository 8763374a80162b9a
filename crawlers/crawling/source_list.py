"""Facts of each source: description, whether it may be crawled, and sealed months."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.corpus.partition import Seal, list_sealed
from core.corpus.permissions import read_permission
from core.plugins import import_parts
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import SourceInfo
from crawlers.questions.contract import (
    QuestionSourceInfo,
    list_question_sources,
    load_question_crawler,
)
from crawlers.registry import is_source, list_all_sources, list_on_demand_sources, load_crawler

_STAND_INS = {  # open source: the closed ones in whose place it stands; extras add theirs
    "commons_audio": "bbc",
    "commons_images": "bbc",
    "hackernews": "reddit",
}


@dataclass(frozen=True)
class SourceFacts:
    """One source; None where something is unknown or does not apply."""

    source: str
    kind: str  # genre of the texts, ``questions``, or ``imported``
    # ``on``, ``off`` (crawled only if it is named), ``needs token`` or ``needs permission``
    status: str
    title: str | None = None
    stands_in_for: str | None = None
    stand_ins: list[str] = field(default_factory=list)  # the open sources in place of this one
    licence: str | None = None
    lag_days: int | None = None
    first_month: str | None = None
    last_month: str | None = None
    sites: dict[str, str] = field(default_factory=dict)
    sealed_months: list[str] = field(default_factory=list)
    last_sealed: str | None = None
    last_outcome: str | None = None  # status of the newest sealed month: complete, partial


def list_source_facts(settings: Settings) -> list[SourceFacts]:
    """Return the sources of texts, open before gated, then of questions, then imported ones."""
    # Subsets and sources of other periods are among them if they have a sealed month.
    store = Store(settings.home)
    sealed: dict[str, list[Seal]] = {}
    for seal in list_sealed(store):
        sealed.setdefault(seal.partition.source, []).append(seal)
    derived = sorted(name for name in sealed if ":" in name and is_source(name))
    infos = [load_crawler(name).INFO for name in [*list_all_sources(), *derived]]
    infos.sort(key=lambda info: info.permission is not None)
    found = [_facts(info, info.category, settings, sealed.pop(info.name, [])) for info in infos]
    for name in list_question_sources():
        info = load_question_crawler(name).INFO
        found.append(_facts(info, "questions", settings, sealed.pop(name, [])))
    for name, seals in sorted(sealed.items()):
        found.append(_with_months(SourceFacts(name, "imported", "off"), seals))
    return found


def _list_stand_ins() -> dict[str, str]:
    found = dict(_STAND_INS)
    for part in import_parts("sources"):
        found |= getattr(part, "STAND_INS", {})
    return found


def _facts(info: SourceInfo, kind: str, settings: Settings, seals: list[Seal]) -> SourceFacts:
    """Return the facts of one source and its sealed months; ``kind`` is as in SourceFacts."""
    stand_ins = _list_stand_ins()
    facts = SourceFacts(
        source=info.name,
        title=info.title,
        kind=kind,
        status=_status(info, settings),
        stands_in_for=stand_ins.get(info.name),
        stand_ins=[name for name, closed in stand_ins.items() if info.name in closed.split(", ")],
        licence=info.licence,
        lag_days=info.lag_days,
        first_month=str(info.first_month),
        last_month=str(info.last_month) if info.last_month else None,
        sites=dict(info.sites),
    )
    return _with_months(facts, seals)


def _status(info: SourceInfo, settings: Settings) -> str:
    """Return whether the source may be crawled, as one of the values of ``SourceFacts.status``."""
    if info.name.partition(":")[0] in list_on_demand_sources():
        return "off"
    if info.permission is None:
        lacks_token = isinstance(info, QuestionSourceInfo) and info.needs_token
        return "needs token" if lacks_token and info.name not in settings.tokens else "on"
    permission = read_permission(Store(settings.home), info.name)
    is_permitted = permission is not None and permission.is_in_force()
    return "off" if is_permitted else "needs permission"


def _with_months(facts: SourceFacts, seals: Sequence[Seal]) -> SourceFacts:
    """Return the facts of a source with those of its sealed months."""
    if not seals:
        return facts
    newest = max(seals, key=lambda seal: str(seal.partition.month or ""))
    return dataclasses.replace(
        facts,
        sealed_months=[str(seal.partition.month or "undated") for seal in seals],
        last_sealed=str(newest.partition.month or "undated"),
        last_outcome=str(newest.manifest.get("status", "complete")),
    )
