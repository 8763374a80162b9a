"""Score a real base model on real dated text, and compare the sums with published ones.

    ACCEPT_GEMMA_TERMS=1 python -m benchmarks real
    python -m benchmarks real --weights FOLDER|FILE.gguf --text FOLDER --tokens 200000

The model is Gemma 3 270M, or another copy of it by --weights. The texts are those of a blog and a
newsletter in public git repositories, or of Parquet files by --text. A reference model is trained
on the texts up to the cutoff that Gemma's makers state. The months lie at equal distances from
2022-01 to 2026-07. The sources, months and documents follow from a budget of tokens. All work is
done by tidemark's own commands, so a run that was stopped continues.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.metadata
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from benchmarks.gemma import FACTS, NAME, fetch_weights
from core.environment import environment_with
from core.month import Month, month_range
from core.settings import load_settings
from core.version import own_version
from warehouse.read.query import query

SUMS = Path(__file__).resolve().parents[1] / "docs" / "real.csv"
TOLERANCE = 1e-6  # relative
SOURCES = ("git_posts:optech_news", "git_posts:rust_blog")
CUTOFF = Month("2024-08")
PROTOCOL = "first-5000-chars"
REFERENCE = "reference-2024-08"
_CONTROLS = ("control:zstd", "control:xz")
_MONTHS = list(month_range(Month("2022-01"), Month("2026-07")))
_TOKENS_A_DOCUMENT = 1200  # of 5,000 characters of English with code
_LEAST_DOCUMENTS = 2  # a month has no standard error of a single document
_LEAST_MONTHS = 14  # eight up to the cutoff and six after it: a gap has an interval
_VERSIONS = ("torch", "transformers", "tokenizers", "zstandard")
_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_tile")
_TABLE = """
select
    g.source, g.model, g.num_months_before, g.num_months_after,
    g.bits_per_byte_before, g.bits_per_byte_after,
    g.bits_per_byte_gap, g.bits_per_byte_gap_low, g.bits_per_byte_gap_high, r.gap_reason
from train_test_gap_at(?) as g
left join internal.interval_reasons as r using (model, source, protocol)
where g.protocol = ? and g.scope = 'source'
order by g.source, g.model
"""
_SUMS = """
select
    source, model, count(*) as months, sum(num_documents)::bigint as documents,
    sum(num_bytes)::bigint as bytes, sum(num_tokens)::bigint as tokens, sum(nll_nats) as nats
from monthly_loss
where protocol = ?
group by source, model
order by source, model
"""


class Plan(NamedTuple):
    """The sources and months to score, and how many documents of each source and month."""

    sources: list[str]
    months: list[Month]
    documents: int


def make_plan(tokens: int, sources: Sequence[str]) -> Plan:
    """Return the plan that a budget of tokens allows: sources first, then months, then documents.

    Each source has at least the months and documents that an interval needs.
    """
    most = max(1, tokens // _TOKENS_A_DOCUMENT)  # documents of all sources
    num_sources = max(1, min(len(sources), most // (_LEAST_MONTHS * _LEAST_DOCUMENTS)))
    of_each = most // num_sources
    step = max(1, math.ceil(len(_MONTHS) * _LEAST_DOCUMENTS / max(1, of_each)))
    months = _MONTHS[:: min(step, len(_MONTHS) // _LEAST_MONTHS + 1)]
    return Plan(list(sources[:num_sources]), months, max(_LEAST_DOCUMENTS, of_each // len(months)))


def main(arguments: Sequence[str]) -> int:
    """Do the whole run; return 1 if sums differ from the published ones."""
    given = _parser().parse_args(arguments)
    home = given.home.resolve()
    files = _list_texts(given.text)
    if given.weights is not None and not given.weights.exists():
        raise SystemExit(f"--weights {given.weights}: no such file or folder")
    weights = given.weights or fetch_weights(home / "weights")
    plan = make_plan(given.tokens, [f"real_{path.stem}" for path in files] or SOURCES)
    sources = plan.sources
    print(_machine())
    print(describe_plan(plan, given.tokens, given.seed), flush=True)
    run = _Run(home)
    for name, path in zip(sources, files, strict=False):
        run.tidemark(*import_sampled(path, name, plan, given.seed, home))
    if not files:
        sample = ("--limit", str(plan.documents), "--seed", str(given.seed))
        for month in plan.months:
            run.tidemark("crawl", *_repeat("-s", sources), "--month", str(month), *sample)
    run.tidemark("models", "add", NAME, str(weights.resolve()), *FACTS, "--replace")
    if not (home / "models" / REFERENCE).exists():
        run.tidemark(
            *("models", "train", REFERENCE, "--cutoff", str(CUTOFF), *_repeat("-s", sources))
        )
    began = time.monotonic()
    models = (*_CONTROLS, REFERENCE, NAME)
    run.tidemark("score", *_repeat("-m", models), "--protocol", PROTOCOL, *_repeat("-s", sources))
    print(f"scored and landed in {time.monotonic() - began:.0f} s", flush=True)
    run.tidemark("report")
    settings = load_settings(home=str(home))
    _print_table(query(settings, _TABLE, [(CUTOFF + 1).first_day, PROTOCOL]).to_pylist())
    sums = query(settings, _SUMS, [PROTOCOL]).to_pylist()
    write_sums(sums, home / SUMS.name)
    (page,) = (home / "report" / "models").glob(f"{NAME.replace('_', '-')}-*.html")
    print(f"\nSums: {home / SUMS.name}\nPage: {page}")
    return 0 if compare_sums(sums, read_sums(given.compare)) else 1


def describe_plan(plan: Plan, tokens: int, seed: int) -> str:
    """Return what a budget buys, and its tokens; an interval may need more than the budget."""
    planned = len(plan.sources) * len(plan.months) * plan.documents * _TOKENS_A_DOCUMENT
    text = (
        f"budget: {tokens:,} tokens: {plan.documents} documents of each of {len(plan.sources)} "
        f"sources in {len(plan.months)} months, about {planned:,} tokens, seed {seed}"
    )
    if planned > tokens:
        text += "; fewer give no interval"
    return text


def _list_texts(folder: Path | None) -> list[Path]:
    """Return the Parquet files of a folder, or none without a folder; check their columns."""
    if folder is None:
        return []
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise SystemExit(f"--text {folder}: no Parquet file is there")
    for path in files:
        try:
            missing = {"id", "date", "text"} - set(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise SystemExit(f"{path}: cannot be read ({error})") from error
        if missing:
            raise SystemExit(f"{path}: lacks the columns {', '.join(sorted(missing))}")
    return files


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks real",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--home", type=Path, default=Path("tidemark-real"), help="data root")
    parser.add_argument("--weights", type=Path, help="folder or .gguf file to use as the model")
    parser.add_argument("--text", type=Path, help="folder of Parquet files: id, date, text, title")
    parser.add_argument("--tokens", type=int, default=68_000, help="budget (default: 68,000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample of documents")
    parser.add_argument("--compare", type=Path, default=SUMS, help="CSV of sums to compare with")
    return parser


class _Run:
    """Runs commands of tidemark on one data root."""

    def __init__(self, home: Path) -> None:
        self._command = [str(Path(sys.executable).with_name("tidemark")), "--home", str(home)]
        # Kept documents would put sentences of the texts into the pages.
        own = {"TIDEMARK_PROTOCOL": PROTOCOL, "TIDEMARK_KEPT_DOCUMENTS": "0"}
        self._environment = environment_with(own)

    def tidemark(self, *arguments: str) -> None:
        """Run a command; raise SystemExit, with what to do, if it fails."""
        try:
            done = subprocess.run([*self._command, *arguments], env=self._environment, check=False)
        except KeyboardInterrupt:
            raise SystemExit("stopped; run the same again, and it goes on from here") from None
        if done.returncode == 0:
            return
        advice = "the message is above; run the same again, and it goes on from here"
        if arguments[0] == "crawl":
            advice += ". Without a way to github.com, give texts that you have: --text FOLDER"
        raise SystemExit(f"`tidemark {' '.join(arguments)}` failed: {advice}")


def _repeat(option: str, values: Sequence[str]) -> list[str]:
    return [part for value in values for part in (option, value)]


def import_sampled(path: Path, name: str, plan: Plan, seed: int, home: Path) -> list[str]:
    """Write the sampled documents of a Parquet file; return the command that imports them.

    A document's place in the sample follows from the seed and its id alone.
    """
    table = pl.read_parquet(path)
    order = [hashlib.sha256(f"{seed} {each}".encode()).hexdigest() for each in table["id"]]
    months = [str(month) for month in plan.months]
    sampled = (
        table.with_columns(pl.Series("_order", order))
        .filter(pl.col("date").cast(pl.String).str.slice(0, 7).is_in(months))
        .sort("_order")
        .group_by(pl.col("date").cast(pl.String).str.slice(0, 7), maintain_order=True)
        .head(plan.documents)
    )
    target = home / "sampled" / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    sampled.select(table.columns).write_parquet(target)
    return ["import", "set", str(target), "--source", name, "--date-column", "date", "--replace"]


def _machine() -> str:
    """Return the processor with the flags that matter, and the versions of libraries."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    present = [flag for flag in _FLAGS if flag in facts.get("flags", "").split()]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _VERSIONS)
    versions = f"tidemark {own_version()}, {versions}"
    return (
        f"{facts.get('model name', platform.machine())}, {os.cpu_count()} cores, "
        f"{' '.join(present)}; Python {platform.python_version()}, {versions}"
    )


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print losses before and after the cutoff, in Markdown."""
    print("\n| source | model | months | before | after | gap | 95 % interval |")
    print("|---|---|--:|--:|--:|--:|---|")
    for row in rows:
        low, high = row["bits_per_byte_gap_low"], row["bits_per_byte_gap_high"]
        interval = row["gap_reason"] or "none"
        if low is not None:
            interval = f"{low:+.3f} to {high:+.3f}"
        months = f"{row['num_months_before']} + {row['num_months_after']}"
        figures = [row["bits_per_byte_before"], row["bits_per_byte_after"]]
        shown = " | ".join("–" if each is None else f"{each:.3f}" for each in figures)
        gap = row["bits_per_byte_gap"]
        told = "–" if gap is None else f"{gap:+.3f}"
        print(f"| {row['source']} | {row['model']} | {months} | {shown} | {told} | {interval} |")


def write_sums(sums: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the sums of each source and model as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(sums[0]))
        writer.writeheader()
        writer.writerows(sums)


def read_sums(path: Path) -> list[dict[str, Any]]:
    """Read sums that ``write_sums`` wrote; return none if there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def compare_sums(found: Sequence[dict[str, Any]], published: Sequence[dict[str, Any]]) -> bool:
    """Print how sums compare with published ones; return True if no pair on equal text differs.

    The reference model is left out: the last bits of its weights depend on the machine.
    """
    known = {(row["source"], row["model"]): row for row in published}
    agrees = True
    for row in found:
        other = known.get((row["source"], row["model"]))
        if row["model"] == REFERENCE or other is None:
            continue
        where = f"{row['source']} {row['model']}"
        if int(other["bytes"]) != row["bytes"]:
            print(f"{where}: other text ({row['bytes']:,} bytes, published {other['bytes']})")
            continue
        difference = abs(row["nats"] / float(other["nats"]) - 1)
        is_equal = difference <= TOLERANCE and int(other["tokens"]) == row["tokens"]
        agrees = agrees and is_equal
        print(f"{where}: {'equal' if is_equal else 'DIFFERENT'} ({difference:.1e} of the sum)")
    return agrees
