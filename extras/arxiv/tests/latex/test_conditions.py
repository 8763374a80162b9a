r"""Branches of conditions, against what LaTeX typesets."""

import time

import pytest

from extras.arxiv.latex.conditions import choose_branches


@pytest.mark.parametrize(
    ("source", "typeset"),
    [
        (r"\newif\ifdraft \ifdraft a\else b\fi c", "b c"),  # a switch is off at first
        (r"\newif\ifdraft \drafttrue \ifdraft a\else b\fi c", "a c"),
        (r"\newif\ifdraft \drafttrue\draftfalse \ifdraft a\fi c", "c"),
        (r"a \iffalse b \ifx\d\e f \else g \fi h \else i \fi j", "a i j"),  # conditions nest
        (r"\iftrue a \iffalse b \fi c \else d \fi e", "a c e"),
        (r"\let\ifdraft=\iffalse a \ifdraft b \else c \fi", "a c"),
        (r"\newif\ifold \iffalse \oldtrue \fi \ifold a \else b \fi", "b"),
        (r"\newif\ifold \newcommand{\note}[1]{\ifold #1\fi} a", r"\newcommand{\note}[1]{ } a"),
    ],
)
def test_the_typeset_branch_stays(source: str, typeset: str) -> None:
    assert choose_branches(source).replace("{}", "{ }").split() == typeset.split()


@pytest.mark.parametrize(
    "source",
    [
        r"\ifx\a\b c \else d \fi e",  # cannot be told
        r"\iffalse a without an end",
        r"\newcommand{\hide}{\iffalse}\hide a \fi b",
        r"a \fi b \else c",
        r"\ifthenelse{\a}{b}{c} \ifdefempty\d{e}{f}",
        r"\\iffalse a \fi",  # a line break, and a word
    ],
)
def test_what_cannot_be_told_stays(source: str) -> None:
    assert choose_branches(source) == source


def test_branches_of_an_unknown_switch_both_stay() -> None:
    source = r"\newif\ifnew \ifx\a\b \newtrue \fi \ifnew c \else d \fi"
    assert {"c", "d"} <= set(choose_branches(source).split())


def test_a_group_of_a_package_does_not_end_a_branch() -> None:
    source = r"\iffalse \ifthenelse{\a}{b}{c} \ifbool{d}{e}{f} g \fi h"
    assert choose_branches(source).split() == ["h"]


@pytest.mark.parametrize("unit", [r"\iftrue ", r"\ifx ", r"\ifx\drafttrue "])
def test_time_is_linear_in_open_conditions(unit: str) -> None:
    began = time.process_time()
    choose_branches(unit * (100_000 // len(unit)))
    assert time.process_time() - began < 0.5
