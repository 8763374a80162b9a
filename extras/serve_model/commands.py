"""Command `serve-model`."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import err, out, until_signal, visible
from cli.terminal.options import settings_of
from core.errors import ModelLoadError, UsageError


def serve_model_command(
    context: typer.Context,
    models: Annotated[
        list[str], Argument(metavar="MODEL…", help="Remote models at addresses of this machine.")
    ],
    run: Annotated[
        str | None,
        Option(help="Command for each model while it is served; {} stands for its name."),
    ] = None,
    options: Annotated[
        str, Option(help="Further options of `vllm serve`: '--dtype float32'.")
    ] = "",
) -> None:
    """Serve models with vLLM here, one after another.

    vLLM must be installed (`vllm` on the PATH). With --run, a command is run for each model:
    `--run 'tidemark score --model {} --month 2026-10'`. Without it, one model is served until
    Ctrl-C. A model that cannot be served does not stop the others.
    """
    from extras.serve_model.serving import plan_command, serving
    from models.catalogue import find_model

    settings = settings_of(context)
    if run is None and len(models) > 1:
        raise UsageError("several models are served one after another: say for what, with --run")
    entries = [find_model(name, settings) for name in models]
    given = _words(options, "--options")
    command = None if run is None else _command(run)
    for entry in entries:
        plan_command(entry, given)
    failed = list[str]()
    left = [entry.name for entry in entries]  # those whose command did not end
    with until_signal():
        for entry in entries:
            try:
                with serving(entry, settings, given) as log:
                    out.print(f"{entry.name}: {entry.location} (log: {log})", soft_wrap=True)
                    if command is None:
                        out.print("Ctrl-C ends it.")
                        threading.Event().wait()
                    elif _run_for(entry.name, command, settings.home) != 0:
                        failed.append(entry.name)
            except ModelLoadError as error:
                err.print(visible(str(error)), soft_wrap=True)
                failed.append(entry.name)
            left.remove(entry.name)
    if failed:
        err.print(visible(f"failed: {', '.join(failed)}"), soft_wrap=True)
    if command is not None and left:
        err.print(visible(f"not done: {', '.join(left)}"), soft_wrap=True)
        raise typer.Exit(1)
    if failed:
        raise typer.Exit(1)


def _words(text: str, option: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from error


def _command(run: str) -> list[str]:
    """Return the words of a command; programs beside this Python come first.

    Raise UsageError if there is no such program.
    """
    words = _words(run, "--run")
    name = words[0] if words else ""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if program is None:
        raise UsageError(f"--run {run!r}: there is no program {name!r} on the PATH")
    return [program, *words[1:]]


def _run_for(name: str, command: list[str], home: str) -> int:
    """Run a command for a model, with this data root; return its exit code."""
    from core.environment import environment_with

    words = [word.replace("{}", name) for word in command]
    return subprocess.run(words, env=environment_with({"TIDEMARK_HOME": home})).returncode


COMMANDS = {"Operate": {"serve-model": serve_model_command}}
