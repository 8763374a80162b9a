"""Commands `export lm-eval`, `eee`, `model-index`, `eval-results`, `dbt` and `hf`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from cli.terminal.console import err, out
from cli.terminal.options import (
    FirstMonth,
    GivenMonth,
    LastMonth,
    Sources,
    settings_of,
    window,
)
from core.periods import parse_period
from core.progress import counted

DataSet = Annotated[
    str | None,
    Option(
        help="Id of the data set on the hub that has the texts, a configuration a source.",
        metavar="OWNER/NAME",
    ),
]


def lm_eval_command(
    context: Context,
    source: Annotated[str, Option("--source", "-s", help="Source.", metavar="NAME")],
    month: Annotated[str, Option(help='A sealed month, or "undated".', metavar="YYYY-MM")],
    output: Annotated[
        Path | None, Option(help="Folder to create. Default: tidemark-lm-eval/TASK.")
    ] = None,
) -> None:
    """Write a sealed month as a task of lm-evaluation-harness.

    `lm_eval --include_path FOLDER --tasks NAME` computes bits per byte as protocol lm-eval does.
    """
    from extras.exchange.lm_eval import export_lm_eval

    chosen = None if month == "undated" else parse_period(month)
    task = export_lm_eval(settings_of(context), source, chosen, output)
    out.print(
        f"task {task.name} of {task.num_documents} documents in {task.folder}", soft_wrap=True
    )
    if task.num_restricted:
        err.print(
            f"warning: {task.num_restricted} documents have no licence that lets others pass their "
            "text on; keep this copy to yourself (the README of the folder lists licences)",
            soft_wrap=True,
        )


def eee_command(
    context: Context,
    output: Annotated[
        Path, Option(help="Folder to create; an earlier export in it is replaced.")
    ] = Path("tidemark-eee"),
) -> None:
    """Write each model's figures as a record of Every Eval Ever (schema 0.3.0).

    A record has a JSON file of its own. Nothing is sent anywhere.
    """
    from extras.exchange.eval_records import export_eval_records

    number = export_eval_records(settings_of(context), output)
    out.print(f"records of {number} models in {output}", soft_wrap=True)


def model_index_command(
    context: Context,
    data_set: DataSet = None,
    output: Annotated[
        Path, Option(help="Folder to create; an earlier export in it is replaced.")
    ] = Path("tidemark-model-index"),
) -> None:
    """Write each model's figures as `model-index`, for the front matter of its Hugging Face card.

    A model has a YAML file of its own. Nothing is sent anywhere.
    """
    from extras.exchange.model_index import export_model_index

    number = export_model_index(settings_of(context), output, data_set)
    out.print(f"figures of {number} models in {output}", soft_wrap=True)


def eval_results_command(
    context: Context,
    data_set: Annotated[
        str, Option(help="Id of the benchmark's data set on the hub.", metavar="OWNER/NAME")
    ],
    output: Annotated[
        Path, Option(help="Folder to create; an earlier export in it is replaced.")
    ] = Path("tidemark-eval-results"),
) -> None:
    """Write figures of the hub's models for `.eval_results` of their repositories.

    `eval.yaml` is for the data set. `manifest.json` says where each file belongs. Figures on
    simulated text are left out. Nothing is sent anywhere.
    """
    from extras.exchange.hub_results import export_hub_results

    number = export_hub_results(settings_of(context), output, data_set)
    out.print(f"results of {number} models in {output}", soft_wrap=True)


def dbt_command(
    context: Context,
    database: Annotated[
        str, Option(help="Name of the database in dbt's profile.", metavar="NAME")
    ] = "warehouse",
    output: Annotated[
        Path, Option(help="Folder to create; an earlier export in it is replaced.")
    ] = Path("tidemark-dbt"),
) -> None:
    """Write `sources.yml` for dbt: every view for analysts, with the facts of its columns."""
    from extras.exchange.dbt import export_dbt

    number = export_dbt(settings_of(context), output, database)
    out.print(f"{number} views in {output}", soft_wrap=True)


def hf_command(
    context: Context,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    output: Annotated[
        Path, Option(help="Folder to create; an earlier export in it is replaced.")
    ] = Path("tidemark-data-set"),
) -> None:
    """Write sealed months with open licences as a data set for the Hugging Face hub.

    `datasets.load_dataset(FOLDER, SOURCE)` reads it. `croissant.json` describes it in Croissant 1.1
    with the fields for responsible AI. Nothing is sent anywhere.
    """
    from extras.exchange.data_set import export_data_set

    months = window(month, first, last) or ()
    found = export_data_set(settings_of(context), source or (), months, output)
    number = sum(seal.num_documents for seal in found.seals)
    what = f"{counted(number, 'document')} of {counted(len(found.seals), 'month')}"
    out.print(f"{what} in {output}", soft_wrap=True)
    for each in found.left_out:
        err.print(f"left out: {each}", soft_wrap=True)


COMMANDS = {
    "Ask": {
        "export lm-eval": lm_eval_command,
        "export eee": eee_command,
        "export model-index": model_index_command,
        "export eval-results": eval_results_command,
        "export dbt": dbt_command,
        "export hf": hf_command,
    }
}
