"""Command that scores models, one flow run per model, and prints each duration.

    python -m benchmarks.orchestration.client MODEL …

Settings come from environment variables. The output is one JSON line per flow run. Libraries are
imported before the first flow run, so the durations exclude the imports.
"""

from __future__ import annotations

import json
import sys
import time

from core.environment import set_library_defaults
from core.settings import load_settings


def main(names: list[str]) -> None:
    """Score each named model in a flow run of its own."""
    settings = load_settings()
    set_library_defaults(settings)
    import models.scoring.token_scorer  # noqa: F401 - torch takes seconds, once a process: not of a flow run
    from flows.work import work

    for model in names:
        began = time.perf_counter()
        state = work(models=[model], return_state=True)
        line = {
            "model": model,
            "seconds": time.perf_counter() - began,
            "holes": [] if state.name == "Completed" else [state.message],
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
