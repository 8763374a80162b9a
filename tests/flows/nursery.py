"""Runs commands in forks of one process that has imported everything, so that each starts at once.

Reads one job a line from stdin, {"arguments": […], "environment": {…}, "log": path}; prints the
child's process id, and its exit code when it has ended (-9: killed).
"""

from __future__ import annotations

import json
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

WARM = (flows.direct, models.causal_lm, models.compressors, simulator.sites)


def run(job: dict[str, Any]) -> None:
    """Be the command; never returns."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(job["environment"])  # noqa: TID251
    sys.argv = ["tidemark", *job["arguments"]]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def serve_jobs() -> None:
    torch.set_num_threads(1)
    for source in list_sources():
        load_crawler(source)
    print("warm", flush=True)  # noqa: T201
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(json.loads(line))
        print(child, flush=True)  # noqa: T201
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve_jobs()
