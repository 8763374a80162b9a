"""Score models one flow run after the other, as a worker does, and print each duration.

    python -m benchmarks.orchestration.client MODEL …

Settings come from the environment. Prints one line of JSON a flow run, and nothing else. Libraries
are loaded before the first.
"""

from __future__ import annotations

import json
import sys
import time

from core.settings import load_settings, set_library_defaults


def main(names: list[str]) -> None:
    """Score each model."""
    settings = load_settings()
    set_library_defaults(settings)
    import models.remote  # noqa: F401 - torch takes seconds, once a process: not of a flow run
    from flows.score import score

    for model in names:
        began = time.perf_counter()
        outcome = score(model, settings=settings)
        line = {
            "model": model,
            "seconds": time.perf_counter() - began,
            "landed": outcome.landed,
            "holes": [str(hole) for hole in outcome.holes],
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
