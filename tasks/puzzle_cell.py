"""One model on one puzzle: it writes inputs, is asked about these and their like, and is judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.errors import ModelError, NotMeasurable
from core.puzzles import PuzzleAnswer, PuzzleCell, PuzzleRecord, Split, write_puzzle_cell
from core.settings import Settings
from core.storage import Store, path_part
from models.generator import Decoding, Generation, GenerationRequest, Generator
from scylla.examples import extract_examples
from scylla.journal import Journal, Kept, entry_key
from scylla.judging import judge
from scylla.prompts import STOP, probe_prompt, question_prompt
from scylla.puzzle import Instance, Puzzle
from scylla.registry import count_anchors, load_puzzle
from scylla.sampling import PuzzleData, Sampling, sample_items
from scylla.seeds import seed_of
from tasks.stopping import go_on

# As the paper's released code has models write inputs; answers are written greedily.
PROBING = Decoding(
    max_new_tokens=1024,
    min_new_tokens=16,
    temperature=0.9,
    top_p=0.95,
    top_k=60,
    repetition_penalty=1.2,
)
ASKING = Decoding(max_new_tokens=2048, stop=STOP)
_FIRST_COMPLETIONS = 128
_HOPELESS_COMPLETIONS = 512  # texts without a single input, after which no more are asked for


@dataclass(frozen=True)
class _Asked:
    """An item, and the request that asks it."""

    split: Split
    item: int
    instance: Instance
    request: GenerationRequest


class _Writer:
    """Has the model write what it has not written before; what it wrote is kept at once."""

    def __init__(self, generator: Generator, journal: Journal) -> None:
        self._generator, self._journal = generator, journal

    def write(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> dict[str, Generation]:
        """Return the texts by the requests' keys; those of errors are asked for anew next time."""
        model = self._generator
        way = model.generation_id(decoding)
        names = {
            request.key: entry_key(model.name, model.revision, way, request.prompt, request.seed)
            for request in requests
        }
        found = {
            key: Generation(key, kept.text, kept.finish, kept.num_tokens)
            for key, name in names.items()
            if (kept := self._journal.find(name)) is not None
        }
        left = [request for request in requests if request.key not in found]
        for made in model.generate(left, decoding) if left else ():
            kept = Kept(names[made.key], made.text, made.finish, made.num_tokens)
            self._journal.keep(kept)  # no error
            found[made.key] = made
            go_on()
        return found


def solve(cell: PuzzleCell, generator: Generator, settings: Settings, store: Store) -> PuzzleRecord:
    """Have the model write inputs and answers, judge these, and write the cell's files.

    Raises:
        ModelError: the model fails, or may not spend more; what it wrote is kept.
        StorageError: what is kept is damaged.
    """
    puzzle = load_puzzle(cell.puzzle)
    # One of all protocols: a text is asked for once, whatever is made of it.
    names = (cell.model, cell.puzzle, cell.revision)
    path = settings.scratch / "puzzles" / "/".join(map(path_part, names))
    with Journal(path.with_name(f"{path.name}.jsonl")) as journal:
        writer = _Writer(generator, journal)
        num_completions, data = _find_items(cell, puzzle, writer, settings)
        answers = list(_ask(cell, puzzle, data, writer, settings))
    record = PuzzleRecord(
        status=data.status,
        level=puzzle.level,
        complexity=puzzle.complexity,
        num_completions=num_completions,
        num_id_elements=data.num_id_elements,
        num_distinct_elements=data.num_distinct_elements,
        num_id_examples=data.num_id_examples,
        num_repaired=data.num_repaired,
        num_items=settings.puzzle_items if data.status == "complete" else 0,
        num_errors=0,
        answers_digest=None,
        num_anchors=count_anchors(),
    )
    return write_puzzle_cell(store, cell, record, answers)


def _find_items(
    cell: PuzzleCell, puzzle: Puzzle, writer: _Writer, settings: Settings
) -> tuple[int, PuzzleData]:
    """Have the model write until there are enough inputs; return after how many texts, and items.

    The number of texts is doubled each time, so that all texts are read twice at most.
    """
    sampling = Sampling(settings.puzzle_items, settings.puzzle_sampling, settings.puzzle_seed)
    most = settings.puzzle_completions
    prompt = probe_prompt(puzzle)
    texts: list[str] = []
    while True:
        wanted = min(most, max(_FIRST_COMPLETIONS, 2 * len(texts)))
        requests = [
            GenerationRequest(
                f"{puzzle.name}/probe/{number}",
                prompt,
                seed_of(settings.puzzle_seed, cell.model, puzzle.name, "probe", number),
            )
            for number in range(len(texts), wanted)
        ]
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
        # More texts would leave even fewer numbers that it never wrote.
        is_exhausted = data.num_id_examples >= sampling.min_examples
        if is_exhausted or is_hopeless or len(texts) >= most:
            return len(texts), data


def _ask(
    cell: PuzzleCell, puzzle: Puzzle, data: PuzzleData, writer: _Writer, settings: Settings
) -> Iterator[PuzzleAnswer]:
    asked = [
        _Asked(
            split,
            item,
            instance,
            GenerationRequest(
                f"{puzzle.name}/{split}/{item}",
                question_prompt(puzzle, instance),
                seed_of(settings.puzzle_seed, cell.model, puzzle.name, split, item),
            ),
        )
        for split, instances in data.items.items()
        for item, instance in enumerate(instances)
    ]
    written = writer.write([each.request for each in asked], ASKING)
    for each in asked:
        yield _judged(puzzle, each, written[each.request.key])


def _judged(puzzle: Puzzle, asked: _Asked, written: Generation) -> PuzzleAnswer:
    verdict = judge(puzzle, asked.instance, written.text, written.finish)
    return PuzzleAnswer(
        split=asked.split,
        item=asked.item,
        input=puzzle.render(asked.instance),
        response=written.text,
        answer=verdict.answer,
        status=verdict.status,
        lenient_status=verdict.lenient_status,
        paper_status=verdict.paper_status,
        num_tokens=written.num_tokens,
        reason=written.reason,
    )
