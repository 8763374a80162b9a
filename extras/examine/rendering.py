"""Output of ``tidemark examine``: the plan, and the answer as text or JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.terminal.console import out, print_table, visible
from core.progress import counted, duration

if TYPE_CHECKING:
    from core.month import Month
    from extras.examine.examination import Examination
    from extras.examine.findings import Findings


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to an examination; empty parts before anything is scored."""

    examination: Examination
    limits: Sequence[str]
    findings: Findings | None = None
    next_steps: Sequence[str] = ()
    page: str | None = None


def _plan(examination: Examination) -> Mapping[str, Any]:
    """Return the plan of an examination as plain values: texts, companions, seconds."""
    sample = examination.sample
    return {
        "model": examination.entry.name,
        "cutoff": examination.entry.cutoff,
        "months": [str(month) for month in sample.months],
        "sources": sample.sources,
        "bytes_of_a_month": sample.quota,
        "bytes": sample.num_bytes,
        "companions": [other.name for other in examination.companions],
        "bytes_per_second": examination.speed.bytes_per_second,
        "seconds": sample.num_bytes / examination.speed.bytes_per_second,
    }


def print_plan(answer: Answer) -> None:
    """Print what is read, in which time, and what this text cannot tell."""
    examination = answer.examination
    sample = examination.sample
    speed = examination.speed
    others = ", ".join(each.name for each in examination.companions)
    out.print(
        f"{examination.entry.name} reads {speed.bytes_per_second / 1024:,.1f} kB a second here",
        soft_wrap=True,
    )
    out.print(
        f"text      {sample.months[0]} to {sample.months[-1]} "
        f"({counted(len(sample.months), 'month')}) of {', '.join(sample.sources)}, "
        f"{sample.quota // 1024} kB a month and source, about "
        f"{duration(sample.num_bytes / speed.bytes_per_second)} for this model",
        soft_wrap=True,
    )
    out.print(f"beside    {others or 'no other language model'}, zstd, xz", soft_wrap=True)
    for each in answer.limits:
        out.print(f"not told  {each}", soft_wrap=True)


def print_as_json(answer: Answer) -> None:
    """Print the plan and all figures, for programs."""
    found = {} if answer.findings is None else dataclasses.asdict(answer.findings)
    record = {
        "plan": _plan(answer.examination),
        "cannot_be_told": answer.limits,
        "next_steps": answer.next_steps,
        "page": answer.page,
        **found,
    }
    out.print_json(json.dumps(record, default=str, ensure_ascii=False))


def print_findings(answer: Answer, findings: Findings) -> None:
    """Print the figures with their intervals or reasons, and the next steps."""
    examination = answer.examination
    if findings.simulated:
        out.print(f"SIMULATED: a program made up the texts of {', '.join(findings.simulated)}")
    out.print(f"cutoff    {_cutoff(findings)}", soft_wrap=True)
    for row in findings.cutoff_by_source:
        told = row["cutoff_text"] or row["reason"]
        out.print(f"          {row['source']}: {told}", soft_wrap=True)
    stated = examination.entry.cutoff
    out.print(f"stated    {stated or 'not known'}")
    out.print(f"gap       {_gap(findings, stated)}", soft_wrap=True)
    out.print(f"ageing    {_ageing(findings, stated)}", soft_wrap=True)
    rows = [
        (row["model"], _number(row["bits_per_byte"]), _interval(row, "bits_per_byte"), row["basis"])
        for row in findings.level
    ]
    print_table("level", ["model", "bits per byte", "95 % interval", "months"], rows)
    for odd in _odd(examination, findings):
        out.print(f"odd       {odd}", soft_wrap=True)
    if findings.cost is not None:
        out.print(
            f"cost      {findings.cost['num_tokens']:,} tokens, "
            f"{duration(findings.cost['seconds'])}, {findings.cost['dtype']}"
        )
    for each in answer.next_steps:
        out.print(f"next      {each}", soft_wrap=True)
    out.print(f"pages     {answer.page}", soft_wrap=True)
    out.print(f"data      {examination.settings.home}", soft_wrap=True)


def _cutoff(findings: Findings) -> str:
    """Return a sentence on the measured cutoff, or why there is none."""
    row = findings.cutoff
    if row is None:
        return f"not told: {findings.reason('estimated_cutoff') or 'the view has no row'}"
    if row["cutoff_text"] is None:
        return f"not told: {row['reason']}"
    text = f"{row['cutoff_text']} (basis: {row['basis']}"
    if row["jump_bits_per_byte"] is not None:
        text += f"; losses rise by {_number(row['jump_bits_per_byte'])} bits per byte there"
    return text + ")" + (f"; {row['reason']}" if row["reason"] else "")


def _gap(findings: Findings, stated: Month | None) -> str:
    """Return a sentence on the gap after the stated cutoff, or why there is none."""
    row = findings.gap
    if row is None or row["bits_per_byte_gap"] is None:
        return _not_told(row, findings, "train_test_gap", stated)
    gap = _number(row["bits_per_byte_gap"])
    text = f"{gap} bits per byte, {_interval(row, 'bits_per_byte_gap')}"
    adjusted = findings.adjusted_gap
    if adjusted is not None and adjusted["adjusted_gap"] is not None:
        less = _number(adjusted["adjusted_gap"])
        text += (
            f"; {less} after what the {adjusted['basis']} says of these months, "
            f"{_interval(adjusted, 'adjusted_gap')}"
        )
    return text


def _ageing(findings: Findings, stated: Month | None) -> str:
    """Return a sentence on the growth of losses a year, or why there is none."""
    row = findings.ageing
    if row is None or row["growth_per_year"] is None:
        return _not_told(row, findings, "ageing", stated)
    growth = _number(row["growth_per_year"])
    return f"{growth} bits per byte a year, {_interval(row, 'growth_per_year')}"


def _not_told(
    row: Mapping[str, Any] | None, findings: Findings, view: str, stated: Month | None
) -> str:
    """Return why a figure is missing, as the views say it, or that they do not say it."""
    reason = findings.reason(view)
    if row is not None and row["reason"]:
        reason = row["reason"]
    if reason is None and stated is None:
        reason = "no cutoff is stated"
    return f"not told: {reason or f'{view} has no row, and no reason'}"


def _odd(examination: Examination, findings: Findings) -> list[str]:
    """Return what is odd: lost text, chunks without a loss, a replaced tokenizer."""
    found = []
    if examination.speed.num_lossy_documents:
        found.append("the tokenizer loses text: tokens of some documents decode to other text")
    reasons = [row["reason"] for row in findings.unmeasured if row["left_out_of"] is None]
    found += [f"chunks without a loss: {reason}" for reason in dict.fromkeys(reasons)]
    found += _replaced_tokenizer(examination)
    return [visible(each) for each in found]


def _replaced_tokenizer(examination: Examination) -> list[str]:
    """Return a warning if transformers' class of the tokenizer is not used."""
    from models.weights.checkpoint import find_tokenizer
    from models.weights.hub import local_folder
    from models.weights.tokenizer_choice import TOKENIZER_FILE

    folder = local_folder(examination.entry)
    if folder is None or not (folder / TOKENIZER_FILE).exists():
        return []
    replaced = find_tokenizer(folder, examination.entry.location).replaced
    if not replaced:
        return []
    return [f"transformers makes {replaced} of its tokenizer; {TOKENIZER_FILE} is used"]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(row: Mapping[str, Any], figure: str) -> str:
    """Return a figure's interval in words, or why there is none."""
    low = row.get(f"{figure}_low")
    high = row.get(f"{figure}_high")
    if low is None or high is None:
        reason = (row.get("reason") or "").removeprefix("no interval: ")
        return f"no interval: {reason}" if reason else "no interval"
    return f"95 % interval {low:.3f} to {high:.3f}"
