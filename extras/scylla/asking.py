"""Requests of a puzzle's cell: the model writes inputs, and answers items, with a journal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.cells.puzzles import PuzzleAnswer, PuzzleCell, PuzzleLikelihood, Split
from core.errors import ModelError, NotMeasurable
from core.settings import Settings
from extras.scylla.demonstrations import render_answer
from extras.scylla.journal import Journal, Kept, entry_key
from extras.scylla.judging import judge, list_stored_answers
from extras.scylla.puzzle import Instance, Puzzle
from extras.scylla.sampling import PuzzleData, Sampling, generator_of, sample_items, seed_of
from extras.scylla.texts import STOP, extract_examples, probe_prompt
from extras.scylla.variants import (
    DIRECT_STOP,
    TRIGGER,
    Variant,
    has_gone_on,
    make_prompt,
    parse_variant,
    second_prompt,
    trim_response,
)
from instruments.running.stopping import go_on
from models.generation import Decoding, Generation, GenerationRequest, Generator

if TYPE_CHECKING:  # torch takes seconds to import
    from extras.scylla.likelihoods import AnswerLosses, LikelihoodModel

# Example inputs are sampled as in the Scylla paper's code. Answers are decoded greedily.
PROBING = Decoding(
    max_new_tokens=1024,
    min_new_tokens=16,
    temperature=0.9,
    top_p=0.95,
    top_k=60,
    repetition_penalty=1.2,
)
ASKING = Decoding(max_new_tokens=2048, stop=STOP)
_DIRECT = replace(ASKING, stop=f"{STOP}|{DIRECT_STOP}")
_SECOND = replace(ASKING, max_new_tokens=256)  # as in the paper's code
_FIRST_COMPLETIONS = 128
_HOPELESS_COMPLETIONS = 512  # number of texts without a valid input that ends the search


def list_decodings(variant: Variant) -> list[Decoding]:
    """Return the decodings of all texts of a variant: inputs, answers, second answers."""
    asking = [] if variant.is_likelihood else [_asking(variant)]
    return [PROBING, *asking, *([_SECOND] if variant.is_second else [])]


def _asking(variant: Variant) -> Decoding:
    return _DIRECT if variant.num_demonstrations else ASKING


class Writer:
    """Generator of texts with a journal: texts in the journal are reused, new texts are added."""

    def __init__(self, generator: Generator, journal: Journal) -> None:
        self._generator = generator
        self._journal = journal

    def write(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> dict[str, Generation]:
        """Return the generations by request key; the next run repeats requests with errors."""
        model = self._generator
        way = model.generation_id(decoding)
        names: dict[str, str] = {}
        found: dict[str, Generation] = {}
        left: list[GenerationRequest] = []
        for request in requests:
            key = request.key
            name = entry_key(model.name, model.revision, way, request.prompt, request.seed)
            names[key] = name
            kept = self._journal.find(name)
            if kept is None:
                left.append(request)
            else:
                found[key] = Generation(key, kept.text, kept.finish, kept.num_tokens)
        if not left:
            return found
        for made in model.generate(left, decoding):
            text = Kept(names[made.key], made.text, made.finish, made.num_tokens)
            self._journal.keep(text)  # ignores errors
            found[made.key] = made
            go_on()
        return found


def find_items(
    cell: PuzzleCell, puzzle: Puzzle, writer: Writer, settings: Settings
) -> tuple[int, PuzzleData]:
    """Generate texts until they contain enough inputs; return number of texts, and items.

    The number of texts doubles at each step, to limit the repeated parsing.
    """
    sampling = Sampling(
        settings.puzzle_items,
        settings.puzzle_sampling,
        settings.puzzle_seed,
        parse_variant(settings.puzzle_prompt).num_of_puzzle,
    )
    most = settings.puzzle_completions
    prompt = probe_prompt(puzzle)
    texts: list[str] = []
    while True:
        wanted = min(most, max(_FIRST_COMPLETIONS, 2 * len(texts)))
        requests = []
        for number in range(len(texts), wanted):
            seed = seed_of(settings.puzzle_seed, cell.model, puzzle.name, "probe", number)
            key = f"{puzzle.name}/probe/{number}"
            requests.append(GenerationRequest(key, prompt, seed))
        written = writer.write(requests, PROBING)
        failed = [each for each in written.values() if each.finish == "error"]
        if failed and failed[0].reason == "too_long":
            raise NotMeasurable(
                f"{cell}: the prompt, with what may follow it, is longer than the model's context; "
                "of a model behind an API, lower max_output_tokens in its entry"
            )
        if failed:
            raise ModelError(
                f"{cell}: {len(failed)} of {len(requests)} texts with inputs could not be had, the "
                f"first: {failed[0].reason}; run the same command again, and only these are asked"
            )
        texts += [written[request.key].text for request in requests]
        data = sample_items(
            cell.model, puzzle, extract_examples(texts, puzzle.input_shape), sampling
        )
        is_hopeless = len(texts) >= _HOPELESS_COMPLETIONS and not data.num_id_examples
        # With enough inputs, stop: more texts would leave fewer unused numbers for OOD items.
        is_exhausted = data.num_id_examples >= sampling.min_examples
        if is_exhausted or is_hopeless or len(texts) >= most:
            return len(texts), data


@dataclass(frozen=True)
class Asked:
    """An item with its prompt."""

    split: Split
    item: int
    instance: Instance
    prompt: str


def list_asked(puzzle: Puzzle, data: PuzzleData, settings: Settings) -> list[Asked]:
    """Return all items with their prompts."""
    variant = parse_variant(settings.puzzle_prompt)
    asked = []
    for split, instances in data.items.items():
        shown = data.demonstrations.get(split, ())
        for item, instance in enumerate(instances):
            prompt = make_prompt(variant, puzzle, instance, shown, settings.puzzle_seed)
            asked.append(Asked(split, item, instance, prompt))
    return asked


def ask(
    cell: PuzzleCell, puzzle: Puzzle, data: PuzzleData, writer: Writer, settings: Settings
) -> Iterator[PuzzleAnswer]:
    """Yield the judged answer to each item; in a second pass, the answer to the second request."""
    variant = parse_variant(settings.puzzle_prompt)
    asked = list_asked(puzzle, data, settings)
    requests = []
    for each in asked:
        seed = seed_of(settings.puzzle_seed, cell.model, puzzle.name, each.split, each.item)
        key = f"{puzzle.name}/{each.split}/{each.item}"
        requests.append(GenerationRequest(key, each.prompt, seed))
    texts = writer.write(requests, _asking(variant))
    if variant.is_second:
        texts |= _ask_again(variant, requests, texts, writer)
    for each, request in zip(asked, requests, strict=True):
        written = texts[request.key]
        text = trim_response(variant, written.text)
        finish = "stop" if has_gone_on(variant, written.text) else written.finish
        verdict = judge(puzzle, each.instance, text, finish)
        yield PuzzleAnswer(
            split=each.split,
            item=each.item,
            input=puzzle.render(each.instance),
            response=text,
            answer=verdict.answer,
            status=verdict.status,
            lenient_status=verdict.lenient_status,
            paper_status=verdict.paper_status,
            num_tokens=written.num_tokens,
            reason=written.reason,
        )


def _ask_again(
    variant: Variant,
    requests: Sequence[GenerationRequest],
    texts: dict[str, Generation],
    writer: Writer,
) -> dict[str, Generation]:
    """Return the texts of the second pass by key; the number of tokens is of both passes.

    An item without a first text has an error, and is asked again by the next run.
    """
    again = []
    for request in requests:
        first = texts[request.key]
        if first.finish != "error":
            prompt = second_prompt(request.prompt, trim_response(variant, first.text))
            again.append(replace(request, prompt=prompt))
    answered = {}
    for key, second in writer.write(again, _SECOND).items():
        answered[key] = second
        if second.finish != "error":
            text = f"{TRIGGER}{_spaced(second.text)}"
            num_tokens = _total(texts[key].num_tokens, second.num_tokens)
            answered[key] = replace(second, text=text, num_tokens=num_tokens)
    return answered


def _spaced(text: str) -> str:
    return text if text[:1].isspace() else f" {text}"


def _total(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def measure(
    cell: PuzzleCell, puzzle: Puzzle, data: PuzzleData, model: LikelihoodModel, settings: Settings
) -> Iterator[PuzzleLikelihood]:
    """Yield the likelihood of each item's right answer, after the prompt of its variant."""
    asked = list_asked(puzzle, data, settings)
    answers = []
    for each in asked:
        rng = generator_of(cell.model, puzzle.name, each.split, each.item, "answers")
        stored = list_stored_answers(puzzle, each.instance, rng)
        answers.append([render_answer(puzzle, answer) for answer in stored])
    prompts = []
    for each, own in zip(asked, answers, strict=True):
        prompts.append((each.prompt, [f" {answer}" for answer in own]))
    for each, own, losses in zip(asked, answers, model.measure(prompts), strict=True):
        shown = puzzle.render(each.instance)
        unmeasured = PuzzleLikelihood(each.split, each.item, shown, len(own))
        yield _with_losses(unmeasured, own, losses)


def _with_losses(
    item: PuzzleLikelihood, answers: Sequence[str], losses: Sequence[AnswerLosses] | None
) -> PuzzleLikelihood:
    """Return the item with its most probable right answer, or why there is none."""
    if losses is None:
        return replace(item, reason="too_long")
    if not all(len(each.answer) for each in losses):
        return replace(item, reason="no_tokens")
    if not all(math.isfinite(each.prompt.sum() + each.answer.sum()) for each in losses):
        return replace(item, reason="non_finite")
    best = max(range(len(losses)), key=lambda place: losses[place].probability)
    return replace(
        item,
        answer=answers[best],
        token_nats=tuple(map(float, losses[best].answer)),
        prompt_nats=float(losses[best].prompt.sum()),
        prompt_tokens=len(losses[best].prompt),
    )
