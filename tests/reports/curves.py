import math
from random import Random

import pyarrow as pa

from core.month import Month, month_range
from core.schemas.tables import LOSSES
from tests.losses import loss_row

FIRST = Month("2024-01")
HOSTILE_MODEL, HOSTILE_SOURCE = """<script>alert(1)</script>&"x\"""", "<b>news</b>"
# Documents of a month differ by these bits per byte, and come to the month's figure.
SPREAD = (-0.06, -0.02, 0.03, 0.05)
NUM_BYTES = 1000

Figures = dict[tuple[str, str, Month], float | None]


def step(
    model: str, source: str, last_before: str, before: float, after: float, months: int = 8
) -> Figures:
    return {
        (model, source, month): before if month <= Month(last_before) else after
        for month in month_range(FIRST, FIRST + (months - 1))
    }


def level(model: str, source: str, bits_per_byte: float, months: int = 8) -> Figures:
    return step(model, source, str(FIRST), bits_per_byte, bits_per_byte, months)


def crowd(num_models: int, dice: Random) -> tuple[Figures, dict[str, str]]:
    """Models of staggered cutoffs on two sources, four in five of which age; m00 is the best."""
    figures: Figures = {}
    cutoffs = {}
    for number in range(num_models):
        name, cutoff = f"m{number:02d}", f"2024-{3 + number % 9:02d}"
        cutoffs[name] = cutoff
        before = 1.0 + 0.01 * number
        after = before + 0.2 * (number % 5 > 0)
        for source in ("news", "code"):
            planted = step(name, source, cutoff, before, after, 14)
            figures |= {key: bits + dice.gauss(0, 0.01) for key, bits in planted.items() if bits}
    for source in ("news", "code"):
        figures |= level("control:zstd", source, 3.0, 14)
    return figures, cutoffs


def losses(figures: Figures) -> pa.Table:
    """Four documents a month; a figure of None is a month that could not be measured."""
    rows = [
        loss_row(
            model, source, month.first_day, f"{source}-{month}-{number}",
            nll_nats=None if bits is None else (bits + spread) * math.log(2) * NUM_BYTES,
            num_chars=NUM_BYTES, num_bytes=NUM_BYTES,
            reason="non_finite" if bits is None else None,
        )
        for (model, source, month), bits in figures.items()
        for number, spread in enumerate(SPREAD)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=LOSSES)
