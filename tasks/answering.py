"""Having models answer questions: planning, the task of one cell, and landing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.answers import Answer, AnswerCell, NoAnswer, find_answers, write_answers
from core.claims import Claims
from core.errors import ModelLoadError, NotMeasurable, UsageError
from core.month import Month
from core.questions import QuestionSeal, list_questions, read_questions
from core.settings import Settings
from core.storage import Store
from models.answer_budget import Budget
from models.answer_protocols import AnswerProtocol, get_answer_protocol
from models.answerer import Answerer
from models.catalogue import ModelEntry, find_model
from tasks.held_model import HeldModel
from tasks.landing import describe_model
from tasks.observe import observe
from tasks.retries import retrying
from tasks.server import writer_slot
from tasks.stopping import go_on
from tasks.tracing import span
from warehouse.own_answers import land_own_answers

API_PROTOCOL = "generate"


@dataclass(frozen=True)
class AnsweringPlan:
    """What one model has to answer: its cells, each with the seal of its questions."""

    entry: ModelEntry
    protocol: AnswerProtocol
    cells: tuple[tuple[AnswerCell, QuestionSeal], ...]
    pending: tuple[tuple[AnswerCell, QuestionSeal], ...]


@dataclass(frozen=True)
class Answered:
    """What came of a cell: how many questions are answered, and which could not be asked."""

    num_answers: int = 0
    missing: tuple[NoAnswer, ...] = ()

    @property
    def lack(self) -> str | None:
        """What is missing, for people; None where nothing is."""
        if not self.missing:
            return None
        first, total = self.missing[0], self.num_answers + len(self.missing)
        return (
            f"{len(self.missing)} of {total} questions have no answer, the first, "
            f"{first.question_id!r}: {first.reason}; run the same command again, and only these "
            "are asked"
        )


def _load(entry: ModelEntry, settings: Settings, budget: Budget) -> Answerer:
    if entry.kind == "api":
        from models.api_answers import load_api_answerer

        return load_api_answerer(entry, settings, budget, Store(settings.home))
    from models.answering import load_answerer

    return load_answerer(entry, settings)


_held = HeldModel(_load)


def answering_models(settings: Settings) -> list[str]:
    """Return the models of the settings that can answer; compressors cannot."""
    return [model for model in settings.models if not model.startswith("control:")]


def begin_spending(settings: Settings) -> None:
    """Give the run that begins its whole budget, of all its models together."""
    _held.begin(settings)


def plan_answers(
    model: str,
    protocol: str | None,
    sources: Sequence[str] | None,
    months: Sequence[Month] | None,
    settings: Settings,
) -> AnsweringPlan:
    """List a model's cells over the sealed questions, without loading its weights.

    Args:
        model: catalogue name or folder.
        protocol: None takes the ``answer_protocol`` setting, of a model behind an API ``generate``.
        sources: None takes every source.
        months: of resolution; None takes every month.
        settings: the data root and the device.

    Raises:
        UnknownName: no such model or protocol.
        UsageError: no questions are sealed of what was asked for.
        ModelLoadError: the model's files are missing or broken.
        NotMeasurable: it cannot be asked under this protocol.
    """
    store, entry = Store(settings.home), find_model(model, settings)
    name = protocol or (API_PROTOCOL if entry.kind == "api" else settings.answer_protocol)
    asked = get_answer_protocol(name)
    seals = [
        seal
        for seal in list_questions(store)
        if (not sources or seal.source in sources) and (months is None or seal.month in months)
    ]
    if not seals:
        raise UsageError(
            "no questions are sealed of what was asked for; crawl them with `tidemark forecast "
            "crawl`, or import them with `tidemark forecast import`"
        )
    revision, answering = _identify(entry, asked, settings)
    cells = [
        AnswerCell(entry.name, revision, s.source, s.month, s.digest, asked.name, answering)
        for s in seals
    ]
    pairs = tuple(zip(cells, seals, strict=True))
    found = {cell: find_answers(store, cell) for cell in cells}
    pending = [pair for pair in pairs if found[pair[0]] != pair[0]]
    # Cells that lack something last: questions that fail again and again hold up no others.
    pending.sort(key=lambda pair: found[pair[0]] is not None)
    return AnsweringPlan(entry, asked, pairs, tuple(pending))


def _identify(entry: ModelEntry, protocol: AnswerProtocol, settings: Settings) -> tuple[str, str]:
    """Return the revision and what names the way of answering."""
    if entry.kind == "control":
        raise NotMeasurable(f"{entry.name}: a compressor has no answers; name a language model")
    if entry.kind == "api":
        answerer = _held.of(entry, settings)
        return answerer.revision, answerer.answering_id(protocol)
    from models.answering import answering_id
    from models.load import identify

    identity = identify(entry, settings)
    return identity.revision, answering_id(identity, protocol)


def spent_by(models: Sequence[str], settings: Settings) -> dict[str, str]:
    """Return what the answers of models behind APIs have taken so far, over all runs."""
    from models.answer_cache import read_spending

    entries = [find_model(model, settings) for model in models]
    store = Store(settings.home)
    return {e.name: str(read_spending(store, e)) for e in entries if e.kind == "api"}


def answer_cell(
    entry: ModelEntry, cell: AnswerCell, seal: QuestionSeal, settings: Settings
) -> Answered:
    """Have a model answer the resolved questions of a month; return what came of it.

    A cell that is there is left alone; one that lacks something is answered anew, where what is
    kept of an API's answers is not asked again. One process at a time answers it.

    Raises:
        ModelError: the model fails, or may not spend more.
        StorageError: the questions are damaged.
    """
    store = Store(settings.home, settings.scratch)
    claims = Claims(store)
    while not store.exists(cell.path):
        with claims.hold([cell.path]) as ours:
            if ours and not store.exists(cell.path):
                return _answer(entry, cell, seal, settings)
        claims.wait(cell.path, is_done=lambda: store.exists(cell.path))
    return Answered()


def _answer(
    entry: ModelEntry, cell: AnswerCell, seal: QuestionSeal, settings: Settings
) -> Answered:
    store = Store(settings.home, settings.scratch)
    questions = [q for q in read_questions(store, seal) if q.status == "resolved"]
    answerer = _held.of(entry, settings)
    if answerer.revision != cell.revision:
        raise ModelLoadError(
            f"{entry.name}: its files have revision {answerer.revision}, expected {cell.revision}; "
            "they changed since the cells were planned, so answer again"
        )
    answers: list[Answer] = []
    missing: list[NoAnswer] = []
    for answer in answerer.answer(questions, get_answer_protocol(cell.protocol)):
        go_on()
        if isinstance(answer, NoAnswer):
            missing.append(answer)
        else:
            answers.append(answer)
    return Answered(write_answers(store, cell, questions, answers, missing), tuple(missing))


@task(task_run_name="answer {cell}", cache_policy=NO_CACHE, persist_result=False)
def answer_month(
    entry: ModelEntry, cell: AnswerCell, seal: QuestionSeal, settings: Settings
) -> Answered:
    """Have a model answer the questions of one source and month; see ``answer_cell``."""
    observe()
    with span("answers", model=entry.name, source=cell.source, month=str(cell.month)):
        return answer_cell(entry, cell, seal, settings)


def land_answers(plan: AnsweringPlan, settings: Settings) -> int:
    """Land the cells of a plan that are there, and what they are joined with; return how many."""

    def land_once() -> int:
        store = Store(settings.home)
        found = [(find_answers(store, cell), seal) for cell, seal in plan.cells]
        there = [(cell, seal) for cell, seal in found if cell is not None]
        with writer_slot():
            if there:
                describe_model(plan.entry, there[0][0].revision, settings)
            return land_own_answers(settings, there)

    return retrying(f"land answers of {plan.entry.name}", land_once)


@task(task_run_name="land answers of {model}", cache_policy=NO_CACHE, persist_result=False)
def land_model_answers(
    model: str,
    protocol: str | None,
    sources: list[str] | None,
    months: list[Month] | None,
    settings: Settings,
) -> int:
    """Land a model's answers; see ``land_answers``."""
    observe()
    with span("land", model=model):
        return land_answers(plan_answers(model, protocol, sources, months, settings), settings)
