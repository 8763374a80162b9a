"""What models are asked: for inputs of a puzzle, and for the answer to one.

The texts are files of ``prompts/``; a change of one is another version, which ``prompts_digest``
tells from the last. A chat model gets the same text as its user's message.
"""

from __future__ import annotations

import functools
import hashlib
import json
import string
from pathlib import Path

from core.errors import MalformedInput
from scylla.puzzle import Instance, Puzzle
from scylla.registry import list_puzzles, load_puzzle

_FOLDER = Path(__file__).parent / "prompts"
_INPUT = "\x00"  # in no statement and no title

_DRESS = r"(?:\\\(|\\\[|\\?boxed\{|\\text\{|\\left|[ \t*$`\"'<])*+"
_UNDRESS = r"(?:\\\)|\\\]|\\right|[ \t*$`\"'>}.!])*+"
_NUMBER = r"[-+\u2212]?\d++(?:(?:[,.' ]|\{,\})\d++)*+"
_LIST = r"\\?[\[({][-+\u2212\d,;. ]*+(?:\\right)?\\?[\])}]"
_BEGINNING = r"(?:^|[\n.!?:;,])[ \t*_#>\"]*+(?:(?:so|thus|therefore|hence|finally|then|and),?[ ])?"
STOP = (
    rf"(?i){_BEGINNING}the (?:final |correct )?answer is:?"
    rf"{_DRESS}(?:{_LIST}|{_NUMBER}){_UNDRESS}\r?\n"
)
"""A regular expression: where it first matches, an answer is given and its line is over.

It is said at the beginning of a sentence: not "suppose the answer is 9".
"""


def probe_prompt(puzzle: Puzzle) -> str:
    """Return the request for inputs of a puzzle, as many as the model can write."""
    template = string.Template(_templates()[f"probe_{puzzle.input_shape}.txt"])
    return template.substitute(title=puzzle.title, statement=puzzle.statement)


def question_prompt(puzzle: Puzzle, instance: Instance) -> str:
    """Return a puzzle's question: the input, a chain of thought asked for, and how to end it."""
    before, after = _around_input(puzzle)
    return before + puzzle.render(instance) + after


def read_question(prompt: str) -> tuple[str, Instance]:
    """Return the puzzle's name and the input of a prompt that ``question_prompt`` gave.

    Raises:
        MalformedInput: it is another prompt.
    """
    for name in list_puzzles():
        puzzle = load_puzzle(name)
        before, after = _around_input(puzzle)
        if prompt.startswith(before) and prompt.endswith(after):
            return name, puzzle.parse(prompt[len(before) : -len(after)])
    raise MalformedInput(
        f"{prompt[:80]!r} is the question of no puzzle; give a prompt that question_prompt made"
    )


@functools.cache
def prompts_digest() -> str:
    """Return eight hex digits over all the files of prompts."""
    return hashlib.sha256(json.dumps(_templates(), sort_keys=True).encode()).hexdigest()[:8]


@functools.cache
def _templates() -> dict[str, str]:
    """Return the text of each file by its name, without the line break at its end."""
    return {path.name: path.read_text(encoding="utf-8").rstrip() for path in _FOLDER.glob("*.txt")}


def _around_input(puzzle: Puzzle) -> tuple[str, str]:
    """Return what a question says before the input and after it."""
    before, _, after = (
        string.Template(_templates()["question.txt"])
        .substitute(
            title=puzzle.title,
            statement=puzzle.statement,
            input=_INPUT,
            answer_rule=puzzle.answer_rule,
        )
        .partition(_INPUT)
    )
    return before, after
