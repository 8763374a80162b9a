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
    given = shlex.split(options)
    for entry in entries:
        plan_command(entry, given)
    failed = list[str]()
    with until_signal():
        for entry in entries:
            try:
                with serving(entry, settings, given) as log:
                    out.print(f"{entry.name}: {entry.location} (log: {log})", soft_wrap=True)
                    if run is None:
                        out.print("Ctrl-C ends it.")
                        threading.Event().wait()
                    elif _run_for(entry.name, run, settings.home) != 0:
                        failed.append(entry.name)
            except ModelLoadError as error:
                err.print(visible(str(error)), soft_wrap=True)
                failed.append(entry.name)
    if failed:
        err.print(visible(f"failed: {', '.join(failed)}"), soft_wrap=True)
        raise typer.Exit(1)


def _run_for(name: str, run: str, home: str) -> int:
    """Run a command for a model, with this data root; return its exit code."""
    from core.environment import environment_with

    words = [word.replace("{}", name) for word in shlex.split(run)]
    beside = shutil.which(words[0], path=str(Path(sys.executable).parent))
    command = [beside or words[0], *words[1:]]
    return subprocess.run(command, env=environment_with({"TIDEMARK_HOME": home})).returncode


COMMANDS = {"Operate": {"serve-model": serve_model_command}}
