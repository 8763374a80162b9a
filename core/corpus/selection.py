"""Selection of sealed partitions by source, month and time of sealing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from core.corpus.partition import Seal, list_sealed
from core.errors import UsageError, did_you_mean
from core.month import Period
from core.storage.store import Store


def select_sealed(
    store: Store,
    sources: list[str] | None,
    months: Sequence[Period] | None,
    as_of: dt.datetime | None = None,
) -> list[Seal]:
    """Return the sorted seals of sources and months (None: all), as they were at time ``as_of``.

    Manifests of other sources and months are not read, so damaged ones raise no error.
    """
    seals: list[Seal] = []
    for source in [None] if sources is None else sorted(set(sources)):
        seals += list_sealed(store, source, as_of, months)
    return [seal for seal in seals if seal.num_documents]  # 0 if a takedown removed all documents


def require_sealed(
    store: Store,
    sources: list[str] | None,
    months: Sequence[Period] | None,
    as_of: dt.datetime | None = None,
) -> None:
    """Check that the requested months are sealed.

    Raises:
        UsageError: no partition of these months is sealed, or none of a requested source.
    """
    known = sorted({seal.partition.source for seal in select_sealed(store, None, months, as_of)})
    when = "" if months is None else f" for {months[0]}"
    when += "" if months is None or months[0] == months[-1] else f" to {months[-1]}"
    when += "" if as_of is None else f" by {as_of.isoformat(timespec='seconds')}"
    for source in sources or known or ["any source"]:
        if source not in known:
            raise UsageError(
                f"nothing is sealed of {source}{when} under {store.root} "
                f"(sealed{when}: {', '.join(known) or 'nothing'}); {did_you_mean(source, known)}"
                "crawl or import it first"
            )
