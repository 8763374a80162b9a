"""Command `examine`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import progress_bars
from cli.terminal.options import (
    FirstMonth,
    LastMonth,
    Sources,
    month_window,
    settings_for_tasks,
)
from core.month import Month


def examine_command(
    context: typer.Context,
    model: Annotated[
        str, Argument(help="Folder, hub id, file or catalogue name.", metavar="MODEL")
    ],
    minutes: Annotated[float, Option(min=0.1, help="Time for the plan and for scoring.")] = 10,
    cutoff: Annotated[
        str | None,
        Option(help="End of the training data, as the maker states it.", metavar="YYYY-MM"),
    ] = None,
    source: Sources = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    companions: Annotated[
        int, Option(min=0, help="Other language models that read the same text, at most.")
    ] = 2,
    plan: Annotated[bool, Option("--plan", help="Only say what can be told.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Find when a model's training data end, from its weights.

    A sample of the sealed months is scored with the model, with compressors, and with other models
    that are on this machine. The command first says what the text that is here can tell.
    """
    settings = settings_for_tasks(context)
    from extras.examine.advice import limits, next_steps
    from extras.examine.examination import (
        ExamineRequest,
        plan_examination,
        score_sample,
    )
    from extras.examine.findings import read_findings
    from extras.examine.rendering import Answer, print_as_json, print_findings, print_plan

    stated = None if cutoff is None else Month(cutoff)
    months = month_window(None, first, last)
    request = ExamineRequest(model, minutes, stated, source, months, companions)
    examination = plan_examination(request, settings)
    entry = examination.entry
    missing = limits(examination.sample.months, entry.cutoff, len(examination.companions))
    answer = Answer(examination, missing)
    if not as_json:
        print_plan(answer)
    if not plan:
        with progress_bars():
            score_sample(examination, settings)
        findings = read_findings(entry.name, examination.settings)
        from reports.site.build import write_site

        page = write_site(examination.settings)
        following = next_steps(findings, entry.cutoff, minutes, examination.planning_minutes)
        answer = Answer(examination, missing, findings, following, page)
        if not as_json:
            print_findings(answer, findings)
    if as_json:
        print_as_json(answer)


COMMANDS = {"Start": {"examine": examine_command}}
