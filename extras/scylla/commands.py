"""Commands `tidemark scylla`: have models solve generated puzzles, and print the scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer import Option

from cli.terminal.console import fail_with, out, print_table, progress_bars
from cli.terminal.options import settings_for_tasks, settings_of
from core.errors import StorageError, UnknownName, UsageError, did_you_mean
from core.progress import counted
from core.storage.store import Store

if TYPE_CHECKING:
    from core.settings import Settings

_SCORES = """
    select s.model, s.protocol, s.level, s.score, s.score_low, s.score_high, s.num_puzzles,
        s.num_expected, s.num_insufficient, c.tied_levels, c.status
    from scylla_scores as s
    inner join scylla_critical_complexity as c using (model, protocol, ood_split, rules)
    where s.rules = 'strict' and s.ood_split = 'ood'
        and ($models::varchar[] is null or list_contains($models::varchar[], s.model))
    order by s.protocol, s.model, s.level nulls last
"""
_CELLS = """
    select model, puzzle, protocol, answer_cell, status, num_completions, num_id_examples
    from internal.scylla_cells
    where ($models::varchar[] is null or list_contains($models::varchar[], model))
        and list_contains($puzzles::varchar[], puzzle)
    order by all
"""
_PUBLISHED = "select distinct model from internal.scylla_cells order by model"
_NUM_SHOWN = 2  # number of printed items per split


class _Score(NamedTuple):
    """A row of ``_SCORES``: a model's score on one level, or on all levels (level None)."""

    model: str
    protocol: str
    level: int | None
    score: float | None
    score_low: float | None
    score_high: float | None
    num_puzzles: int
    num_expected: int
    num_insufficient: int
    tied_levels: list[int]
    status: str


class _Item(NamedTuple):
    """An item that a model solved, as its cell has it."""

    split: str
    item: int
    status: str
    input: str
    response: str
    reason: str | None


scylla_app = typer.Typer(
    help="Puzzles of Scylla: do models generalise or memorise?", no_args_is_help=True
)

WriterNames = Annotated[
    list[str] | None,
    Option(
        "--model",
        "-m",
        help="Catalogue name, model folder, or scripted model such as scripted:valley; repeat for "
        "several. Default of run: TIDEMARK_MODELS, else models.yaml; of show: all.",
        metavar="NAME|FOLDER",
    ),
]
PuzzleNames = Annotated[
    list[str] | None,
    Option("--puzzle", "-p", help="Puzzle; repeat for several. Default: all.", metavar="NAME"),
]

Prompt = Annotated[
    str | None,
    Option(
        help="How puzzles are asked: zero-shot-cot, few-shot-K, mixed-K or varied-K with K "
        "demonstrations, and -second or -likelihood after it. Default: TIDEMARK_PUZZLE_PROMPT.",
        metavar="NAME",
    ),
]


@scylla_app.command("run")
def scylla_run(
    context: typer.Context,
    model: WriterNames = None,
    puzzle: PuzzleNames = None,
    prompt: Prompt = None,
) -> None:
    """Have models solve the puzzles, land the scores, publish, and write the page.

    Answered items are not asked again, so a killed run can be continued. Scripted models with
    known scores are controls: -m scripted:small -m scripted:large.
    """
    settings = settings_for_tasks(context)
    from extras.scylla.scripted import PREFIX, list_scripted
    from extras.scylla.solving import solve_and_land
    from extras.scylla.variants import parse_variant
    from instruments.forecasts import answering_models, spent_by
    from reports.site.build import find_current_site, page_of, write_site

    if prompt:
        settings = settings.model_copy(update={"puzzle_prompt": parse_variant(prompt).name})
    models = model or answering_models(settings)
    if not models:
        raise UsageError(
            "no model that can write: name one with --model, in models.yaml or in TIDEMARK_MODELS; "
            f"to look at how it works, one of {', '.join(list_scripted())}"
        )
    with progress_bars():
        solved = solve_and_land(settings, models, puzzle)
    for remark in solved.remarks:
        out.print(str(remark), soft_wrap=True)
    items = counted(solved.num_items, "item")
    puzzles = counted(solved.num_landed, "puzzle")
    out.print(f"{items} a split solved, {puzzles} landed")
    bought = [name for name in models if not name.startswith(PREFIX)]
    for name, spent in spent_by(bought, settings).items():
        out.print(f"{name} has taken so far: {spent}", soft_wrap=True)
    if solved.num_cells:
        index = find_current_site(settings) or write_site(settings)
        out.print(f"report    {page_of(index, 'puzzles.html')}", soft_wrap=True)
    fail_with(list(map(str, solved.failures)))


@scylla_app.command("show")
def scylla_show(
    context: typer.Context, model: WriterNames = None, puzzle: PuzzleNames = None
) -> None:
    """Print the published scores by level of complexity, and the critical complexity.

    With --puzzle, print some items instead: the input, the response, and the verdict.
    """
    settings = settings_of(context)
    if puzzle:
        print_items(settings, model, puzzle)
    else:
        print_scores(settings, model)


def print_scores(settings: Settings, models: Sequence[str] | None) -> None:
    """Print the published scores by level of complexity, and the critical complexity."""
    from warehouse.read.query import query

    given = _names(models, settings)
    scores = [_Score(**row) for row in query(settings, _SCORES, {"models": given}).to_pylist()]
    if not scores:
        raise _nothing(settings, given)
    by_model: dict[tuple[str, str], list[_Score]] = {}
    for score in scores:
        by_model.setdefault((score.model, score.protocol), []).append(score)
    print_table(
        "score by level of complexity: share solved out of distribution, less the gap",
        ("model", "asked", "1", "2", "3", "4", "5", "all", "95 % interval", "critical", "puzzles"),
        [[name, protocol, *_line(own)] for (name, protocol), own in by_model.items()],
    )


def _line(scores: Sequence[_Score]) -> list[str]:
    """Return the cells of a model's row: scores by level, interval, critical level, puzzles."""
    overall = scores[-1]
    critical = overall.tied_levels if overall.status == "found" else ()
    interval = "–"
    if overall.score_low is not None:
        interval = f"{overall.score_low:+.2f} to {overall.score_high:+.2f}"
    lacking = overall.num_insufficient
    return [
        *("–" if each.score is None else f"{each.score:+.2f}" for each in scores),
        interval,
        ", ".join(map(str, critical)) or overall.status,
        f"{overall.num_puzzles} of {overall.num_expected}"
        + (f"; {lacking}: too few inputs" if lacking else ""),
    ]


def print_items(settings: Settings, models: Sequence[str] | None, puzzles: Sequence[str]) -> None:
    """Print some items of puzzles, with the input, the response, and the verdict."""
    from extras.scylla.puzzle import load_puzzle
    from warehouse.read.query import query

    names = _names(models, settings)
    given = {"models": names, "puzzles": [load_puzzle(puzzle).name for puzzle in puzzles]}
    cells = query(settings, _CELLS, given).to_pylist()
    if not cells:
        raise _nothing(settings, names, puzzles)
    store = Store(settings.home)
    for cell in cells:
        title = f"{cell['model']} on {cell['puzzle']} ({cell['protocol']})"
        out.print(title, style="bold")
        if cell["status"] != "complete":
            examples = cell["num_id_examples"]
            texts = cell["num_completions"]
            out.print(f"insufficient ID data: {examples} inputs in {texts} texts\n")
            continue
        for item in _items(store, cell["answer_cell"]):
            if item.item < _NUM_SHOWN:
                _print_item(item)


def _items(store: Store, path: str) -> list[_Item]:
    """Return the asked items of a cell; raise an error if its file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(path) as file:
            items = pq.read_table(file, columns=list(_Item._fields)).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise StorageError(
            f"{store.url(path)} cannot be read ({error}); bring it back from a backup, or move it "
            "and the .json beside it out of the data root and run `tidemark scylla run` again"
        ) from error
    return [_Item(**item) for item in items]


def _print_item(item: _Item) -> None:
    """Print an item: its input, the response, and its status."""
    lines = [
        f"{item.split} {item.item}: {item.status}",
        *item.input.splitlines(),
        "->",
        *(item.response.strip() or item.reason or "(nothing)").splitlines(),
    ]
    out.print("\n    ".join(lines) + "\n")


def _names(models: Sequence[str] | None, settings: Settings) -> list[str] | None:
    """Return the catalogue names of models; names outside the catalogue stay unchanged."""
    from models.catalogue import find_model

    names = []
    for model in models or ():
        try:
            names.append(find_model(model, settings).name)
        except UnknownName:
            names.append(model)
    return names or None


def _nothing(
    settings: Settings, models: Sequence[str] | None, puzzles: Sequence[str] = ()
) -> UsageError:
    """Return the error that nothing of these models and puzzles is published."""
    from warehouse.read.query import query

    published = query(settings, _PUBLISHED)["model"].to_pylist()
    asked = " on ".join(", ".join(map(repr, each)) for each in (models or (), puzzles) if each)
    meant = "".join(did_you_mean(model, published) for model in models or ())
    return UsageError(
        f"nothing of {asked or 'any model'} is published; {meant}published are: "
        f"{', '.join(published) or 'none'}; have models solve puzzles with `tidemark scylla run`"
    )


COMMANDS = {"Other instruments": {"scylla": scylla_app}}
