"""What `tidemark corpus show` and `diff` print of partitions."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import zstandard

from core import progress
from core.corpus import Partition, Seal, list_sealed, list_versions, read_documents, read_seal
from core.errors import UsageError
from core.month import Month
from core.sealing import HELD_BECAUSE, read_held
from core.storage import Store
from core.text_difference import measure_difference

Row = tuple[object, ...]

# In this order, if they are there; other keys of the manifest follow.
_FIRST = (
    "kind", "status", "ended_early", HELD_BECAUSE, "accepted", "window", "started_at", "ended_at",
    "sealed_at", "num_documents", "num_bytes", "content", "digest", "content_digest", "forgotten",
)  # fmt: skip
_ACCOUNT = ("requested", "kept", "dropped", "failed", "repeated")
_LEFT_OUT = ("source", "month", "version", "files", *_ACCOUNT)


def choose_seal(
    store: Store, partition: Partition, version: int | None, held: bool, as_of: dt.datetime | None
) -> Seal:
    """Return what is asked for of a partition.

    Raises:
        UsageError: there is no such version, nothing is sealed, or nothing is held back.
    """
    if held:
        seal = read_held(store, partition)
    elif version is None:
        seal = read_seal(store, partition, as_of)
    else:
        found = [each for each in list_versions(store, partition) if each.version == version]
        seal = found[0] if found else None
    if seal is not None:
        return seal
    known = [str(each.version) for each in list_versions(store, partition)]
    if not known and not read_held(store, partition):
        raise UsageError(
            f"nothing is sealed of {partition} under {store.root}; see `tidemark sources list`"
        )
    held_too = (
        "; something is held back (--held)" if not held and read_held(store, partition) else ""
    )
    raise UsageError(
        f"there is no such version of {partition} under {store.root} (sealed versions: "
        f"{', '.join(known) or 'none'}{held_too})"
    )


def describe_seal(store: Store, seal: Seal) -> list[Row]:
    """Return names and values of what a manifest says, for people, and what is in the parts."""
    manifest = seal.manifest
    rows: list[Row] = [("version", _of_versions(store, seal)), ("folder", store.url(seal.folder))]
    rows += [(name, _plain(manifest[name])) for name in _FIRST if manifest.get(name) is not None]
    rows += _account(manifest)
    for name in ("licence", "language"):
        rows.append((f"{name}s of documents", _counts(_column(store, seal, name))))
    rest = [name for name in manifest if name not in (*_FIRST, *_LEFT_OUT)]
    return rows + [(name, _plain(manifest[name])) for name in rest if manifest[name] is not None]


def _of_versions(store: Store, seal: Seal) -> str:
    if PurePosixPath(seal.folder).name == "held":
        return "held back"
    versions = [each.version for each in list_versions(store, seal.partition)]
    held = "; another is held back (--held)" if read_held(store, seal.partition) else ""
    return f"{seal.version} of {len(versions)}{held}"


def _account(manifest: Mapping[str, object]) -> Iterator[Row]:
    """What became of the items that were asked for, which has to add up."""
    if "requested" not in manifest:
        return
    sums: dict[str, int] = {}
    for name in _ACCOUNT[1:]:
        value = manifest.get(name, 0)
        sums[name] = sum(value.values()) if isinstance(value, dict) else int(str(value))
    total = " + ".join(f"{num:,} {name}" for name, num in sums.items())
    yield "requested", f"{manifest['requested']:,} = {total}"
    for name in ("dropped", "failed"):
        reasons = manifest.get(name)
        if isinstance(reasons, dict) and reasons:
            yield name, ", ".join(f"{num:,} {reason}" for reason, num in reasons.items())


def _column(store: Store, seal: Seal, name: str) -> Iterator[object]:
    for batch in read_documents(store, seal, columns=[name], batch_rows=8192):
        yield from batch[name].to_pylist()


def _counts(values: Iterator[object]) -> str:
    counts = Counter(str(value) for value in values)
    return ", ".join(f"{num:,} {value}" for value, num in counts.most_common())


def _plain(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(str(_plain(each)) for each in value)
    return value


def list_dropped(store: Store, seal: Seal) -> list[Row]:
    """Return what was not kept: the item's id, what became of it, why, and details."""
    path = f"{seal.folder}/dropped.jsonl.zst"
    if not store.exists(path):
        return []
    with store.open(path) as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        items = [json.loads(line) for line in reader.read().splitlines()]
    return [
        tuple(item[name] for name in ("native_id", "outcome", "reason", "detail")) for item in items
    ]


def diff_months(
    store: Store, source: str, months: Sequence[Month] | None, as_of: dt.datetime | None
) -> list[Row]:
    """Compare months with the month before and with the first one.

    Raises:
        UsageError: nothing of the source is sealed, or no dated text, or nothing to compare.
    """
    from warehouse.text_comparisons import plan_comparisons

    plan = plan_comparisons(store, [source], months, as_of=as_of)
    pairs = [(each.earlier, each.later) for each in plan]
    if not pairs:
        raise UsageError(f"{source} has no two months to compare; crawl or import more of it")
    return _compare(
        store, [(str(b.partition.month), str(a.partition.month), a, b) for a, b in pairs]
    )


def diff_versions(store: Store, source: str, months: Sequence[Month] | None) -> list[Row]:
    """Compare each version of months with the version before.

    Raises:
        UsageError: no month of the source has two versions of text.
    """
    jobs = []
    for newest in list_sealed(store, source):
        if months is not None and newest.partition.month not in months:
            continue
        versions = [seal for seal in list_versions(store, newest.partition) if seal.is_text]
        for before, after in zip(versions, versions[1:], strict=False):
            name = f"{newest.partition.month or 'undated'} version {after.version}"
            jobs.append((name, f"version {before.version}", before, after))
    if not jobs:
        raise UsageError(f"no month of {source} has two versions to compare")
    return _compare(store, jobs)


def _compare(store: Store, jobs: Sequence[tuple[str, str, Seal, Seal]]) -> list[Row]:
    rows: list[Row] = []
    for number, (name, other, earlier, later) in enumerate(jobs, start=1):
        found = measure_difference(store, earlier, later)
        value = found.reason if found.difference is None else f"{found.difference:.4f}"
        rows.append((name, other, found.method, found.num_documents, found.num_bytes, value))
        progress.report("compare texts", number, len(jobs))
    return rows
