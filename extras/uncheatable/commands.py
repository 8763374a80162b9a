"""Commands `protocols choose` and `protocols cut`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import out, print_table
from cli.terminal.options import settings_of
from core.errors import UsageError
from core.progress import counted

Texts = Annotated[Path, Argument(help="JSON lines with content (or text) and category.")]


def protocols_choose(
    context: typer.Context,
    model: Annotated[str, Argument(help="Catalogue name, folder or hub id.")],
    path: Texts,
    chunk: Annotated[int, Option(min=2, help="Tokens of a chunk.")] = 4000,
) -> None:
    """Print the figure of each start-token mode of Uncheatable Eval, the best first.

    Score with the first protocol; its name is part of every loss, so the choice is on record.
    """
    from extras.uncheatable.starts import StartFigure, choose_start, documents_of, read_set
    from models.backends import load_scorer
    from models.catalogue import find_model
    from models.scoring.token_scorer import TokenScorer

    settings = settings_of(context)
    documents = [documents_of(read_set(path))]
    scorer = load_scorer(find_model(model, settings), settings)
    if not isinstance(scorer, TokenScorer):
        raise UsageError(f"{model} has no tokens; choose a start token for a language model")
    figures = choose_start(scorer, documents, chunk)
    print_table("start tokens", list(StartFigure._fields), figures)


def protocols_cut(
    path: Texts,
    output: Annotated[Path, Argument(help="JSON lines to write.")],
    tokenizer: Annotated[list[str], Option(help="Folder of a tokenizer; repeat for several.")],
) -> None:
    """Cut a set as Uncheatable Eval does: 500 texts a category, NFC, at most 3,800 tokens."""
    from extras.uncheatable.starts import prepare_set, read_set
    from models.scoring.text_model import text_model_of
    from models.weights.checkpoint import find_tokenizer

    tokenizers = [
        text_model_of(find_tokenizer(Path(each), each).tokenizer).tokenizer for each in tokenizer
    ]
    kept = prepare_set(read_set(path), tokenizers)
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in kept]
    output.write_text("".join(lines), encoding="utf-8")
    out.print(counted(len(kept), "text"))


COMMANDS = {
    "Score models": {"protocols choose": protocols_choose, "protocols cut": protocols_cut},
}
