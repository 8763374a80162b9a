"""The examination of one model: plan, score a sample, read the figures."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.corpus.partition import Seal, list_sealed
from core.errors import ModelError, UsageError, did_you_mean
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from extras.examine.advice import command_for_text
from extras.examine.budget import (
    COMPRESSORS,
    PROTOCOL,
    Speed,
    bytes_within,
    find_companions,
    measure_speed,
)
from extras.examine.sampling import (
    TextSample,
    choose_sample,
    seal_sample,
    usable,
)
from instruments.losses import score_and_land
from models.catalogue import ModelEntry, add_model, find_model


@dataclass(frozen=True)
class ExamineRequest:
    """The options of an examination.

    Attributes:
        model: catalogue name, folder, file or hub id.
        minutes: time for the plan and for scoring; about three tenths more go into the rest.
        cutoff: the cutoff that the maker states, or None for that of the catalogue.
        sources, months: the sealed text to choose from; None: all.
        num_companions: number of other language models that read the same text, at most.
    """

    model: str
    minutes: float = 10
    cutoff: Month | None = None
    sources: list[str] | None = None
    months: list[Month] | None = None
    num_companions: int = 2


@dataclass(frozen=True)
class Examination:
    """The plan of an examination: who reads what, where, and for how long."""

    entry: ModelEntry
    companions: tuple[ModelEntry, ...]
    sample: TextSample
    speed: Speed
    settings: Settings  # of the data root of the sample
    planning_minutes: float = 0.0  # time that loading the model and measuring its speed took

    @property
    def names(self) -> list[str]:
        """The models to score, as the data root of the sample knows them."""
        return [*map(_name_of, (self.entry, *self.companions)), *COMPRESSORS]


def plan_examination(request: ExamineRequest, settings: Settings) -> Examination:
    """Load the model, measure its speed, and choose the text that fits into the time left.

    Raises:
        UsageError: no dated text is here (the message names commands that bring some), or the
            model cannot be examined.
        UnknownName: there is no such model.
        ModelError: the model cannot be loaded, or has no losses.
    """
    began = time.monotonic()
    entry = find_model(request.model, settings)
    if entry.backend.is_control:
        raise UsageError(f"{entry.name} is a compressor: it has no training data to examine")
    if request.cutoff is not None:
        entry = _with_cutoff(entry, request.cutoff)
    seals = _sealed_text(request, settings)
    speed = measure_speed(entry, seals[0], settings)
    companions = find_companions(entry, speed.parameters, settings, request.num_companions)
    planning_minutes = (time.monotonic() - began) / 60
    left = max(0.0, request.minutes - planning_minutes)
    sample = choose_sample(seals, bytes_within(left, speed, companions))
    folder = settings.scratch / "examine" / sample.digest
    own = settings.model_copy(update={"home": str(folder), "work_dir": None, "corpus_as_of": None})
    return Examination(entry, tuple(companions), sample, speed, own, planning_minutes)


def _with_cutoff(entry: ModelEntry, cutoff: Month) -> ModelEntry:
    """Return the model with the cutoff that the user states."""
    if not entry.backend.is_listed:
        raise UsageError(f"{entry.name} has a planted cutoff, {entry.cutoff}; leave out --cutoff")
    return replace(
        entry,
        cutoff=cutoff,
        cutoff_provenance="stated",
        cutoff_precision="month",
        cutoff_url=None,
    )


def _sealed_text(request: ExamineRequest, settings: Settings) -> list[Seal]:
    """Return the sealed months of the request; raise an error that says what there is."""
    sealed = usable(list_sealed(Store(settings.home), as_of=settings.corpus_as_of))
    seals = list(sealed)
    if request.sources is not None:
        seals = [seal for seal in seals if seal.partition.source in request.sources]
    if request.months is not None:
        seals = [seal for seal in seals if seal.partition.month in request.months]
    if seals:
        return seals
    if sealed:
        names = sorted({seal.partition.source for seal in sealed})
        meant = "".join(did_you_mean(source, names) for source in request.sources or ())
        hint = f"; {meant.rstrip()}" if meant else ""
        raise UsageError(
            f"no month of these sources and months is sealed in {settings.home} "
            f"(here: {', '.join(names)}){hint}"
        )
    raise UsageError(
        f"no dated text is in {settings.home}; `{command_for_text()}` brings some from public git "
        "repositories, without a token; then run the same again"
    )


def score_sample(examination: Examination, source: Settings) -> None:
    """Seal the sample, score it with all models, land and publish.

    The copies of the texts are deleted at the end, so that a takedown has one place to look at.

    Raises:
        ModelError: the model has no losses; the message has the reason.
    """
    try:
        seal_sample(examination.sample, Store(source.home), Store(examination.settings.home))
        failures = _score(examination)
    finally:
        shutil.rmtree(Path(examination.settings.home) / "corpus", ignore_errors=True)
    own = failures_of(failures, (examination.entry.name, _name_of(examination.entry)))
    if own:
        raise ModelError(own[0])


def failures_of(failures: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the failures of a model's cells, of the model, and of the landing of its losses."""
    begins = tuple(f"{name}{mark}" for name in names for mark in (":", " on "))
    return [failure for failure in failures if failure.removeprefix("land ").startswith(begins)]


def _score(examination: Examination) -> list[str]:
    """Score the sealed sample with all models, land and publish; return the failures."""
    for entry in (examination.entry, *examination.companions):
        if _is_added(entry):
            add_model(entry, examination.settings, replace=True)
    _, failures = score_and_land(
        examination.settings,
        examination.names,
        examination.sample.sources,
        [*examination.sample.months],
        [PROTOCOL],
        retry_failed=True,
    )
    return failures


def _is_added(entry: ModelEntry) -> bool:
    return entry.backend.is_listed


def _name_of(entry: ModelEntry) -> str:
    return entry.name if _is_added(entry) else entry.location
