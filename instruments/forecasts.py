"""The second instrument (measurement): answers of models to forecasting questions."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from core.cells.answers import Answer, AnswerCell, NoAnswer, find_answers, write_answers
from core.corpus.partition import list_sealed_sources
from core.corpus.questions import QuestionSeal, list_questions, read_questions
from core.corpus.spelled import find_spelled
from core.errors import TidemarkError, UsageError, did_you_mean
from core.month import Month
from core.settings import Settings
from core.storage.claims import Claims
from core.storage.store import Store
from instruments.driver import WorkRequest, work_and_land
from instruments.landing import land_model
from instruments.models import held
from instruments.runner import Done, Plan
from instruments.running.stopping import go_on
from models.backends import identify, load_answerer
from models.catalogue import CONTROLS, ModelEntry, find_model
from models.choice import chosen_models
from models.options.protocols import Answerer, AnswerProtocol, get_answer_protocol
from warehouse.land.answers import land_answer_cells

API_PROTOCOL = "generate"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AskedCell:
    """A cell of answers, with the manifest (seal) of its questions."""

    cell: AnswerCell
    seal: QuestionSeal

    def __str__(self) -> str:
        return str(self.cell)


class AnsweringPlan(Plan[AskedCell]):
    """The cells of questions that one model must answer."""

    verb = "answer"
    fatal = (TidemarkError,)

    def in_flight(self, settings: Settings) -> int:
        """Return 1: the model answers one cell at a time, but the cell's questions concurrently."""
        return 1

    def files_of(self, cell: AskedCell) -> AnswerCell:
        """Return the key of the cell's files."""
        return cell.cell

    def is_done(self, cell: AskedCell, store: Store) -> bool:
        """Return True if all questions of a cell have answers."""
        return store.exists(cell.cell.path)

    def attempt(self, cells: tuple[AskedCell, ...], settings: Settings) -> Done:
        """Have the model answer the questions of one month; see ``answer_cell``."""
        return answer_cell(self.entry, cells[0], settings)

    def land(self, settings: Settings) -> int:
        """Land the cells that have answers; return the number of landed cells."""
        store = Store(settings.home)
        found = [(find_answers(store, each.cell), each.seal) for each in self.cells]
        answered = [(cell, seal) for cell, seal in found if cell is not None]
        if answered:
            land_model(self.entry, answered[0][0].revision, settings)
        return land_answer_cells(settings, answered)


def answering_models(settings: Settings) -> list[str]:
    """Return the configured models without the compressors, which cannot answer questions."""
    return [model for model in chosen_models(settings) if model not in CONTROLS]


def plan_answers(
    model: str,
    protocol: str | None,
    sources: Sequence[str] | None,
    months: Sequence[Month] | None,
    settings: Settings,
) -> AnsweringPlan:
    """List a model's cells over the sealed questions, without loading the model's weights.

    ``protocol`` None means ``generate`` for a model behind an API, else the ``answer_protocol``
    setting. ``months`` are the months in which the questions were resolved. Protocols of tasks
    cover only tasks (questions made from texts). Other protocols cover all other questions.

    Raises:
        UnknownName: there is no such model or protocol.
        UsageError: no questions of these sources and months are sealed.
        ModelLoadError: the model's files are missing or broken.
        NotMeasurable: the model cannot answer under this protocol.
    """
    store = Store(settings.home)
    entry = find_model(model, settings)
    name = protocol or (API_PROTOCOL if entry.backend.is_paid else settings.answer_protocol)
    asked = get_answer_protocol(name)
    seals = [seal for seal in list_questions(store) if seal.is_task == asked.is_task]
    if sources:
        seals = [seal for seal in seals if seal.source in sources]
    if months is not None:
        seals = [seal for seal in seals if seal.month in months]
    if not seals:
        raise UsageError(_nothing_sealed(store, sources or (), asked.is_task))
    revision, ids = _identify(entry, asked, seals, settings)
    cells = []
    unanswered = []
    partly_answered = []
    for seal in seals:
        cell = AnswerCell(
            model=entry.name,
            revision=revision,
            source=seal.source,
            month=seal.month,
            questions_digest=seal.digest,
            protocol=asked.name,
            answering=ids[seal.digest],
        )
        each = AskedCell(cell, seal)
        cells.append(each)
        found = find_answers(store, cell)
        if found is None:
            unanswered.append(each)
        elif found != cell:
            partly_answered.append(each)
    # Cells with some answers come last, so that questions that always fail delay no other cell.
    return AnsweringPlan(entry, tuple(cells), (*unanswered, *partly_answered))


def _nothing_sealed(store: Store, sources: Sequence[str], is_task: bool) -> str:
    """Return the message of an error: no questions of the sources and months are sealed."""
    known = {seal.source for seal in list_questions(store)}
    if is_task:
        known |= {*list_sealed_sources(store)}
    hint = "".join(did_you_mean(source, known) for source in sources)
    if is_task:
        return (
            f"no tasks are sealed of what was asked for; {hint}make them with `tidemark tasks "
            "make` of the extra real_tasks"
        )
    return (
        f"no questions are sealed of what was asked for; {hint}crawl them with `tidemark forecast "
        "crawl`, or import them with `tidemark forecast import` of the extra question_files"
    )


def _identify(
    entry: ModelEntry, protocol: AnswerProtocol, seals: Sequence[QuestionSeal], settings: Settings
) -> tuple[str, dict[str, str]]:
    """Return the model's revision, and a hash of all that influences the answers, by digest.

    Questions that spell one of the model's control tokens have a hash of their own.
    """
    if entry.backend.is_paid:
        answerer = held.get(load_answerer, entry, settings)
        answering = answerer.answering_id(protocol)
        return answerer.revision, {seal.digest: answering for seal in seals}
    from models.written import any_answering_id

    store = Store(settings.home)
    identity = identify(entry, settings)
    words: frozenset[str] = getattr(identity, "control_texts", frozenset())
    sealed = {seal.digest: partial(_texts, store, seal) for seal in seals}
    spelling = find_spelled(store, sealed, words)
    ids = {
        seal.digest: any_answering_id(identity, protocol, seal.digest in spelling) for seal in seals
    }
    return identity.revision, ids


def _texts(store: Store, seal: QuestionSeal) -> Iterator[str]:
    """Yield all text of each question that a model may read."""
    for question in read_questions(store, seal):
        yield "\n".join(
            [
                question.title,
                question.background or "",
                question.resolution_criteria or "",
                *question.options,
            ]
        )


def spent_by(models: Sequence[str], settings: Settings) -> dict[str, str]:
    """Return the total spending over all runs, as text, of each model behind an API."""
    from models.servers.budget import AnswerCache

    entries = [find_model(model, settings) for model in models]
    store = Store(settings.home)
    return {e.name: str(AnswerCache(store, e).spending()) for e in entries if e.backend.is_paid}


def answer_cell(entry: ModelEntry, asked: AskedCell, settings: Settings) -> Done:
    """Have a model answer the questions of one source that were resolved in one month.

    Complete cells, and cells that another process claims, are skipped. For an incomplete cell, all
    questions are asked again, but stored answers of an API are reused.

    Raises:
        ModelError: the model fails, or its spending limit is reached.
        StorageError: the questions are damaged.
    """
    store = Store(settings.home, settings.scratch)
    cell = asked.cell
    with (
        held.hold(load_answerer, entry, cell.revision, settings) as answerer,
        Claims(store).hold([cell.done_path]) as claimed,
    ):
        go_on()
        if not claimed:
            return Done(claimed=(asked,))
        if store.exists(cell.done_path):  # another process was faster
            return Done()
        return _answer(answerer, asked, store)


def _answer(answerer: Answerer, asked: AskedCell, store: Store) -> Done:
    """Ask a model the questions of a cell, and write its answers."""
    questions = [q for q in read_questions(store, asked.seal) if q.status == "resolved"]
    answers: list[Answer] = []
    missing: list[NoAnswer] = []
    for answer in answerer.answer(questions, get_answer_protocol(asked.cell.protocol)):
        go_on()
        if isinstance(answer, NoAnswer):
            missing.append(answer)
        else:
            answers.append(answer)
    if answers and all(answer.chosen_index is None for answer in answers):
        first = answers[0]
        _log.warning("%s: none of %d responses has an answer, the first: %s (%.80r)", asked,
                     len(answers), first.reason, first.response)  # fmt: skip
    num_answers = write_answers(store, asked.cell, questions, answers, missing)
    return Done(num_answers, lack=_describe_lack(num_answers, missing))


def _describe_lack(num_answers: int, missing: Sequence[NoAnswer]) -> str:
    """Return a message about missing answers with a remedy; empty if none are missing."""
    if not missing:
        return ""
    first = missing[0]
    total = num_answers + len(missing)
    return (
        f"{len(missing)} of {total} questions have no answer, the first, "
        f"{first.question_id!r}: {first.reason}; run the same command again, and only these "
        "are asked"
    )


def answer_and_land(
    settings: Settings,
    models: Sequence[str],
    protocols: Sequence[str | None],
    sources: list[str] | None,
    months: list[Month] | None,
) -> tuple[int, int, list[str]]:
    """Have models answer the questions that lack answers, land the cells and publish.

    Return the number of answered questions, the number of landed cells, and the failures. If a
    model fails, the answers received before the failure still land.

    Raises:
        UsageError: a name is unknown, or no questions of these sources and months are sealed.
    """
    held.begin(settings)
    for model in models:  # a wrong name must cost nothing
        find_model(model, settings)
    for protocol in protocols:
        if protocol is not None:
            get_answer_protocol(protocol)
    request = answer_request(models, protocols, sources, months, settings)
    summary = work_and_land(request, settings)
    return summary.num_items, summary.num_landed, list(map(str, summary.failures))


def answer_request(
    models: Iterable[str],
    protocols: Sequence[str | None],
    sources: Sequence[str] | None,
    months: Sequence[Month] | None,
    settings: Settings,
    **choices: Any,
) -> WorkRequest:
    """Return the request to answer sealed questions; ``choices`` are its further fields.

    With several protocols, the request has each model once per protocol.
    """
    asked = {}  # model and protocol, by name in the request
    for model in models:
        for protocol in protocols:
            asked[f"{model} {protocol or ''}".strip()] = (model, protocol)

    def plan(name: str) -> AnsweringPlan:
        model, protocol = asked[name]
        return plan_answers(model, protocol, sources, months, settings)

    return WorkRequest(models=tuple(asked), plan=plan, root=AnswerCell.ROOT, **choices)
