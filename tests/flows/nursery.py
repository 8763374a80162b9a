"""Runs commands in forks of one process that has imported everything, so that each starts at once.

A job is {"arguments": […], "environment": {…}, "log": path}.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

import flows.direct
import models.causal_lm
import models.compressors
import simulator.sites
from crawlers.contract import list_sources, load_crawler
from flows.cli import main
from tests.forks import serve

WARM = (flows.direct, models.causal_lm, models.compressors, simulator.sites)


def run(job: dict[str, Any]) -> None:
    """Be the command."""
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
