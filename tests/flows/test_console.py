"""What the command line prints of names that users and sites have chosen."""

from __future__ import annotations

import pytest

from core import progress
from flows.console import out, print_table, progress_bars


def test_names_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("[/title]", ["name"], [("[/cell] :cat:",), (None,)])
    out.print("[bold]line :dog:")
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("[/title]", "[/cell] :cat:", "–", "[bold]line :dog:"))


def test_a_step_of_any_name_has_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars():
        progress.report("score [/model]", 1, 1)
    assert "score [/model]" in capsys.readouterr().err
