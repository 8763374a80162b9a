import io
import logging
from pathlib import Path
from typing import Any

import pytest

from cli.terminal.console import VisibleConsole, escape_log, out, progress_bars
from core import progress

HOSTILE = "a\x1b]0;title\x07\u202eb"
SHOWN = r"a\x1b]0;title\x07\u202eb"


def test_the_console_shows_control_characters() -> None:
    file = io.StringIO()
    VisibleConsole(file=file, markup=False, width=200).print(HOSTILE, f"{HOSTILE}\n")
    assert file.getvalue() == f"{SHOWN} {SHOWN}\n\n"


def test_half_a_character_is_shown_too(capfd: pytest.CaptureFixture[str]) -> None:
    out.print("\ud800")
    assert capfd.readouterr().out == "\\ud800\n"


def test_progress_and_warnings_show_control_characters(capfd: pytest.CaptureFixture[str]) -> None:
    escape_log()
    with progress_bars():
        progress.report(f"score {HOSTILE}", 1, 2)
        progress.report("crawl", 2, 3, 1)
    logging.lastResort.handle(  # type: ignore[union-attr]
        logging.LogRecord("name", logging.WARNING, "", 0, "warn %s", (HOSTILE,), None)
    )
    shown = capfd.readouterr().err
    assert "\x1b]" not in shown
    assert f"warn {SHOWN}" in shown
    assert "crawl (1 failed)" in shown and "2/3" in shown


def test_a_command_shows_names_escaped(tidemark: Any, tmp_path: Path) -> None:
    done = tidemark("models", "add", HOSTILE, "org/model")
    assert done.out == f"added {SHOWN}\n"
