"""A test at loading: does a server return the likelihoods of the tokens that it was sent?

Servers returned values of earlier prompts from a cache of prefixes (vllm#42019). Others returned
values that depend on the prompts beside it (vllm#51187), or those of the token before or after.
So 32 prompts are asked alone, together, and together in the reverse order. They are longer than
three blocks of a cache, and eight each share the beginning of a stem. If the weights are here,
their losses are compared, too. Without them, these rules of any model of text hold:

- Tokens before the first difference of two prompts have the same losses.
- Different tokens at this place have different losses.
- A start token before the text changes the losses after it.
- Unlikely tokens do not have all the same loss.
- Another beginning of a long prompt changes the losses at its end, if only by rounding errors.
- Losses do not grow from token to token, and prompts do not all end with the same loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from core.errors import ModelLoadError, NotMeasurable
from models.scoring.scorer import DeviceFull, Engine, Losses, Tokens
from models.scoring.text_model import TextModel

# Tolerated differences of a token's loss, in nats: root of the mean square, and largest. bfloat16
# rounds by an RMS of 0.03 (Fast-LLM#525), float32 by less than 0.003.
TOLERANCE = 0.05
LARGEST = 0.5
NOTABLE = 0.01  # an RMS above this one is worth a warning
SHORT = 201  # tokens: more than three blocks of 64, the largest that caches use by default
LONG = 2112  # tokens of two prompts: more than windows have, and than a step of chunked prefill
_GROUPS = 4
_IN_GROUP = 8
_IDENTICAL = 1e-4  # nats; with a start token and without it, some token's loss differs by more
_UNLIKELY = 5.0  # nats
_MOST_EQUAL = 0.1  # largest share of unlikely tokens that may have one loss
_BEGINNING = 48  # tokens of a long prompt that are changed; and how many are compared at its end
_END = 16
_TEXTS = (
    "The tide leaves a mark on the sand, and the next tide washes it away. 12 + 34 = 46.",
    "Models read what was written before them; text goes on being written, and is read.",
    "def add(a, b):\n    return a + b  # 17\n\n\nprint(add(1, 2))",
    "Ein Schiff verlässt den Hafen um 6.40 Uhr. Le bateau revient à midi. 船は夜に戻る。",
)


class Plan(NamedTuple):
    """The prompts of a probe, each (length,); the first of each group is its stem.

    Attributes:
        shared: for each prompt, the number of first tokens that it shares with its stem.
        bare: the last stem without its start token, or None if no prompt has one.
        other: the first stem with other tokens at its beginning.
    """

    prompts: list[Tokens]
    shared: list[int]
    bare: Tokens | None
    other: Tokens


class Found(NamedTuple):
    """The largest difference of a token's loss in nats, and the largest RMS of a comparison."""

    largest: float
    rms: float


class Reference(NamedTuple):
    """An engine with the same weights, or None with the reason why there is none."""

    engine: Engine | None
    about: str  # for the record of a cell


def plan_probe(text_model: TextModel, context: int | None) -> Plan:
    """Return the prompts for a tokenizer; none is longer than ``context`` and one target.

    Raise ModelLoadError if the tokenizer makes no prompt.
    """
    texts = text_model.tokenizer.tokenize(_TEXTS)
    words = np.concatenate([tokens.ids for tokens in texts])
    most = LONG if context is None else context + 1
    if len(set(words.tolist())) < 2 or most < _IN_GROUP + 2:
        raise ModelLoadError(
            f"the tokenizer makes {len(words)} tokens of {_TEXTS}, and the server takes prompts of "
            f"{most}; expected a tokenizer of text and a longer context"
        )
    start = [] if text_model.start_token is None else [text_model.start_token]
    random = np.random.default_rng(39)
    prompts: list[Tokens] = []
    shared: list[int] = []
    for group in range(_GROUPS):
        length = min(LONG if group < 2 else SHORT, most)
        text = np.concatenate([np.roll(words, 7 * group), random.permutation(words)])
        stem = np.resize(np.concatenate([start, text]), length).astype(np.int64)
        prompts.append(stem)
        shared.append(length)
        # Branches leave the stem within a block of a cache, or at its end.
        size = min(SHORT, most)
        for place in np.linspace(size / 4, size - 2, _IN_GROUP - 1).astype(int):
            branch = np.concatenate([stem[:place], random.choice(words, size - place)])
            branch[place] = words[np.argmax(words != stem[place])]
            prompts.append(branch)
            shared.append(int(place))
    other = prompts[0].copy()
    changed = min(_BEGINNING, len(other) // 4)
    other[len(start) : changed] = np.roll(other[len(start) : changed], 1)
    return Plan(prompts, shared, stem[1:] if start else None, other)


def probe(engine: Engine, plan: Plan, reference: Reference, advice: str) -> tuple[Found, str]:
    """Ask a plan's prompts alone, together and in the reverse order, and compare the losses.

    Return the largest differences, and a sentence about the comparison with the weights.

    Raise NotMeasurable, with the difference and what to do, if a rule does not hold; and the
    errors of ``Engine.losses``.
    """
    prompts = plan.prompts
    alone = [_losses(engine, [prompt])[0] for prompt in prompts]
    rounding = _require_spread(prompts, alone, advice)
    worst = rounding
    for how, order in (("together", 1), ("in the reverse order", -1)):
        found = _losses(engine, prompts[::order])[::order]
        why = (
            f"a prompt has other losses {how} than alone, so they depend on order, on neighbours "
            "or on what a cache of prefixes holds"
        )
        worst = _accept(worst, _apart(alone, found), why, advice)
    worst = _require_prefixes(worst, plan, alone, advice)
    _require_own_values(alone)
    _require_start(engine, plan, alone, advice)
    worst, about, is_compared = _compare_weights(worst, plan, alone, reference, advice)
    # Values that are rounded can be equal without a fault.
    if not is_compared and rounding.rms == 0:
        _require_memory(engine, plan, alone)
    return worst, about


def _losses(engine: Engine, prompts: Sequence[Tokens]) -> list[Losses]:
    return engine.losses([ids[:-1] for ids in prompts], [ids[1:] for ids in prompts])


def _apart(ours: Sequence[Losses], theirs: Sequence[Losses]) -> Found:
    """Return the differences of parallel losses; empty rows count as equal."""
    rows = [a - b for a, b in zip(ours, theirs, strict=True)]
    differences = np.concatenate([np.zeros(1), *rows])
    rms = float(np.sqrt(np.square(differences).sum() / max(1, len(differences) - 1)))
    return Found(float(np.abs(differences).max()), rms)


def _is_tolerated(found: Found) -> bool:
    return found.rms <= TOLERANCE and found.largest <= LARGEST  # False for NaN


def _accept(worst: Found, found: Found, why: str, advice: str) -> Found:
    """Return the worse of two findings; raise NotMeasurable if the second is not tolerated."""
    if not _is_tolerated(found):
        raise NotMeasurable(
            f"{why}; the largest difference is {found.largest:.2f} nats a token, RMS "
            f"{found.rms:.3f} (tolerated: {LARGEST} and {TOLERANCE}); {advice}"
        )
    return Found(max(worst.largest, found.largest), max(worst.rms, found.rms))


def _require_spread(prompts: Sequence[Tokens], alone: Sequence[Losses], advice: str) -> Found:
    """Return the error of rounding; raise NotMeasurable if it is not tolerated.

    Raise it also if many tokens have exactly one loss, as those outside a top k.
    """
    of_context = {}
    for ids, losses in zip(prompts, alone, strict=True):
        for place, value in enumerate(losses[:SHORT]):
            of_context[tuple(ids[: place + 2].tolist())] = value
    values = np.array(list(of_context.values()))
    rounding = _rounding(values)
    why = "the server rounds the log-probabilities, so that most of them are equal to others"
    worst = _accept(Found(0.0, 0.0), rounding, why, advice)
    for some, what in ((values[values > _UNLIKELY], "unlikely"), (values, "all")):
        known, counts = np.unique(some, return_counts=True)
        if len(some) >= 2 * _IN_GROUP and counts.max() > max(2, _MOST_EQUAL * len(some)):
            raise NotMeasurable(
                f"{counts.max()} of {len(some)} {what} tokens have a loss of exactly "
                f"{known[counts.argmax()]:.4g} nats; the server cuts the distribution to the most "
                "likely tokens (top_k, top logprobs), or returns a fixed value for tokens in its "
                "cache; ask for the whole distribution (vLLM: --logprobs-mode raw_logprobs)"
            )
    return worst


def _rounding(values: Losses) -> Found:
    """Return the error of values that were rounded to equal steps; 0 if they were not.

    Rounded values are mostly equal to others, even without the most frequent one.
    """
    known, counts = np.unique(values, return_counts=True)
    num_others = len(values) - counts.max()
    if len(known) < 2 or len(known) - 1 > num_others / 2:
        return Found(0.0, 0.0)
    step = float(np.median(np.diff(known)))
    return Found(step / 2, step / math.sqrt(12))


def _require_prefixes(worst: Found, plan: Plan, alone: Sequence[Losses], advice: str) -> Found:
    """Compare the losses of tokens that prompts share with their stems, and of those after them."""
    common: list[tuple[Losses, Losses]] = []
    turns: list[tuple[Losses, Losses]] = []
    for number, place in enumerate(plan.shared):
        if number % _IN_GROUP:
            stem = alone[number - number % _IN_GROUP]
            own = alone[number]
            # ``losses[i]`` belongs to token i + 1.
            common.append((own[: place - 1], stem[: place - 1]))
            turns.append((own[place - 1 : place], stem[place - 1 : place]))
    if _is_tolerated(_apart(*_columns(turns))):
        raise NotMeasurable(
            "different tokens after the same text have the same loss, so each value belongs to "
            "the token before (off by one); use another version of the server"
        )
    found = _apart(*_columns(common))
    before = _apart(*_columns([(own[:-1], stem[:-1]) for own, stem in common]))
    why = "tokens before the first difference of two prompts have other losses"
    if _is_tolerated(before):
        why += ", at its last place only, so each value belongs to the token after (off by one)"
    else:
        why += ", so they depend on what follows them, or on a cache of prefixes or chunks"
    return _accept(worst, found, why, advice)


def _require_own_values(alone: Sequence[Losses]) -> None:
    """Raise NotMeasurable if losses are sums so far, or if all prompts end with one loss."""
    if all((np.diff(losses) >= 0).all() for losses in alone):
        raise NotMeasurable(
            "no token has a smaller loss than the token before it, so each value is a sum over the "
            "tokens so far; use a server that returns the log-probability of each token"
        )
    if len({float(losses[-1]) for losses in alone}) == 1:
        raise NotMeasurable(
            f"the last token of each prompt has a loss of exactly {alone[0][-1]:.4g} nats, so the "
            "server returns a fixed value there; use another version of the server"
        )


def _columns(pairs: Sequence[tuple[Losses, Losses]]) -> tuple[list[Losses], list[Losses]]:
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _require_start(engine: Engine, plan: Plan, alone: Sequence[Losses], advice: str) -> None:
    """Raise NotMeasurable if the last stem has the same losses without its start token."""
    if plan.bare is None:
        return
    begun = alone[(_GROUPS - 1) * _IN_GROUP]
    (bare,) = _losses(engine, [plan.bare])
    found = _apart([begun[1:]], [bare])
    if found.largest <= _IDENTICAL:
        raise NotMeasurable(
            "a text has the same losses with a start token and without it, so the server drops "
            f"the token or adds its own; {advice}"
        )


def _require_memory(engine: Engine, plan: Plan, alone: Sequence[Losses]) -> None:
    """Raise NotMeasurable if another beginning of a long prompt changes no digit at its end."""
    (other,) = _losses(engine, [plan.other])
    num_last = min(_END, len(other) // 16)
    if num_last and np.array_equal(other[-num_last:], alone[0][-num_last:]):
        raise NotMeasurable(
            f"the last {num_last} tokens of a prompt of {len(plan.other)} tokens have exactly the "
            "same losses after another beginning, so the server cuts long prompts, or the model "
            "has a shorter memory; serve with a longer context, or, if the model has no more, "
            "give a folder with its weights, which are then compared"
        )


def _compare_weights(
    worst: Found, plan: Plan, alone: Sequence[Losses], reference: Reference, advice: str
) -> tuple[Found, str, bool]:
    """Compare the losses with those of the same weights, if there are any and they run.

    The last item is True if they were compared.
    """
    engine = reference.engine
    if engine is None:
        return worst, reference.about, False
    try:
        expected = [_losses(engine, [prompt])[0] for prompt in plan.prompts]
        apart = _apart(alone, expected)
        why = "" if _is_tolerated(apart) else _explain(plan, alone, expected, engine)
    except DeviceFull:
        num = max(map(len, plan.prompts))
        return worst, f"not compared with the weights: no memory here for {num} tokens", False
    why = f"the same weights here have other losses: {why}"
    return _accept(worst, apart, why, advice), reference.about, True


def _explain(
    plan: Plan, alone: Sequence[Losses], expected: Sequence[Losses], engine: Engine
) -> str:
    """Return a reason for differences from the same weights: the first that removes them."""
    if _is_tolerated(_apart([a[:-1] for a in alone], [b[1:] for b in expected])):
        return "each value belongs to the token after (off by one)"
    if _is_tolerated(_apart([a[1:] for a in alone], [b[:-1] for b in expected])):
        return "each value belongs to the token before (off by one)"
    if plan.bare is not None:
        without = [_losses(engine, [prompt[1:]])[0] for prompt in plan.prompts]
        if _is_tolerated(_apart([a[1:] for a in alone], without)):
            return "the server leaves out the start token"
        begun = [np.concatenate([prompt[:1], prompt]) for prompt in plan.prompts]
        twice = [losses[1:] for losses in _losses(engine, begun)]
        if _is_tolerated(_apart(alone, twice)):
            return "the server adds a second start token"
    return (
        "the server has other weights than those beside the entry's tokenizer (an adapter, say), "
        "quantises them, changes the distribution (temperature), cuts long prompts, or rounds "
        "more; name the tokenizer of the served model, or give a folder with its tokenizer's files "
        "alone"
    )
