"""Runs jobs {"arguments": […], "environment": {…}, "log": path} in forks, to spare imports."""

import os
import sys
from typing import Any

import torch

import instruments.losses
import models.compressors
import models.scoring.token_scorer
import simulator.sites
from cli.main import main
from crawlers.registry import list_sources, load_crawler
from tests.forks import serve

WARM = (instruments.losses, models.scoring.token_scorer, models.compressors, simulator.sites)


def run(job: dict[str, Any]) -> None:
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(job["environment"])  # noqa: TID251
    sys.argv = ["tidemark", *job["arguments"]]
    main()


def serve_commands() -> None:
    torch.set_num_threads(1)
    for source in list_sources():
        load_crawler(source)
    serve(run)
