"""What a release says of itself: how to cite it, how to verify it, what is in it."""

from __future__ import annotations

import datetime as dt
import json

from core.month import Month

_README = """\
# tidemark release {month}

Losses of language models on text of every month up to {month}, and on undated corpora: {cells}
cells (a model on a source's month under a protocol) that tidemark has scored, and what was landed
from elsewhere. Later months are left out, so figures are those of a reader at the end of {month}.

- `warehouse.duckdb`: the losses, and every figure as an SQL view. Any DuckDB from 1.5 on opens it.
- `cells.jsonl`: the cells, with the model's revision, the text's digest, the checksum of the losses
  and what scoring took.
- `partitions.jsonl`: the manifests of the text that was scored: where and when it was fetched.
- `catalogue.json`: what is known of models (cutoffs, with their provenance), sources and protocols.
- `versions.json`: versions of tidemark and of its libraries, hashes of the protocols.

The text itself is not in the release: it is its authors'.

## Verify

```sh
sha256sum -c SHA256SUMS
```

`tidemark reproduce CELL --release {month}`, in a data root that has the text, scores one cell again
and compares; `cells.jsonl` names them all.

## Cite

Cite the month and the checksum of the database, so that a reader knows which figures were meant:

> tidemark release {month}, warehouse.duckdb SHA-256 {digest}.

`CITATION.cff` has the same for reference managers.
"""


def readme(month: Month, digest: str, num_cells: int) -> str:
    """Return the README of a release; ``digest`` is its database's SHA-256."""
    return _README.format(month=month, digest=digest, cells=num_cells)


def citation(month: Month, digest: str, day: dt.date, contact: str) -> str:
    """Return the CITATION.cff of a release (Citation File Format 1.2.0).

    Args:
        month: of the release.
        digest: SHA-256 of its database.
        day: when it was made.
        contact: the setting; goes in where it is an address on the web.
    """
    is_web = contact.startswith(("https://", "http://"))
    lines = [
        "cff-version: 1.2.0",
        "message: Cite this release as below.",
        "type: dataset",
        f"title: tidemark release {month}",
        "authors:",
        "  - name: tidemark",
        f'version: "{month}"',
        f"date-released: {day}",
        *([f"url: {json.dumps(contact)}"] if is_web else []),
        "identifiers:",
        "  - type: other",
        f'    value: "sha256:{digest}"',
        "    description: SHA-256 of warehouse.duckdb",
    ]
    return "\n".join(lines) + "\n"
