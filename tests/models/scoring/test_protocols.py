import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NotMeasurable, UnknownName, UsageError
from core.settings import Settings
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import get_protocol, list_protocols
from models.scoring.scorer import bf16_sum
from models.scoring.token_scorer import CausalLM
from tests.models.conftest import SENTENCES, nats

# Fixed values: a changed hash would cause rescoring of every cell.
DIGESTS = {
    "default": "051fed7d", "own-context": "5bb5d903", "disjoint-2048": "c7ca43cc",
    "disjoint-4096": "4750d983", "disjoint-8192": "0a59a867", "sliding": "f90d1e72",
    "stream": "8f36c11f", "first-5000-chars": "15ff737e", "whole-document": "42c7915b",
    "chat": "0b44754b", "solid": "ccd3fac8", "uncheatable": "84d6d9a2",
    "uncheatable-bos": "bf9d7d28", "lm-eval": "e9e29cdd", "lm-eval-no-bos": "2e8bacf0",
    "uncheatable-add-bos": "a3b0bebe", "uncheatable-add-eos": "e8b7117e",
    "uncheatable-add-newline": "92a48ee9", "uncheatable-replace-bos": "8370881c",
    "uncheatable-replace-eos": "c0eab089", "uncheatable-replace-newline": "cfa5beeb",
    "opencompass-swce": "c34ba0f6", "llm-compressive": "95dc1623", "llm-compressive-sw": "6803efe4",
}  # fmt: skip


def test_the_table_lists_the_default_first_and_each_name_gives_its_entry():
    protocols = list_protocols()
    assert protocols[0].name == "default"
    for protocol in protocols:
        assert get_protocol(protocol.name) is protocol
        assert len(protocol.description) > 60
    assert len({protocol.digest for protocol in protocols}) == len(protocols)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (("default", None, None), "default"), (("default", 2048, None), "default"),
        (("default", 512, None), "disjoint-512"), (("own-context", 512, None), "disjoint-512"),
        (("disjoint", 512, None), "disjoint-512"), (("disjoint-2048", 512, None), "disjoint-512"),
        (("disjoint-8192", None, 4096), "sliding-8192-4096"), (("default", None, 512), "sliding"),
        (("default", 1024, 256), "sliding-1024-256"),
        (("disjoint-512", None, 128), "sliding-512-128"),
        (("disjoint-512-128", None, None), "sliding-512-128"),
        (("sliding", 1024, None), "sliding-1024-256"), (("sliding", None, 256), "sliding-2048-256"),
        (("sliding-2048-512", None, None), "sliding"), (("sliding-2", None, None), "sliding-2-1"),
        (("stream-1900-512", None, None), "stream"), (("stream", 64, 16), "stream-64-16"),
        (("uncheatable", 512, None), "uncheatable-512"),
        (("uncheatable-512", 1024, None), "uncheatable"),
        (("uncheatable-bos", 512, None), "uncheatable-bos-512"),
        (("lm-eval", 1024, None), "lm-eval-1024"),
        (("lm-eval-no-bos", 512, None), "lm-eval-no-bos-512"),
        (("opencompass-swce", 256, 64), "opencompass-swce-256-64"),
        (("llm-compressive", 512, None), "llm-compressive-512"),
        (("llm-compressive-sw-512-128", None, None), "llm-compressive-sw-512-128"),
        (("llm-compressive-sw-512-128-1", None, None), "llm-compressive-sw-512-128"),
        (("llm-compressive-sw-2048-512-4", None, None), "llm-compressive-sw-2048-512-4"),
        (("llm-compressive-sw-512-128-4", 256, None), "llm-compressive-sw-256-128-4"),
    ],
)  # fmt: skip
def test_variants_have_names_that_read_back(asked, name):
    protocol = get_protocol(*asked)
    assert protocol.name == name
    assert get_protocol(name) == protocol


@given(
    st.sampled_from(
        ["disjoint", "sliding", "stream", "uncheatable", "uncheatable-bos", "lm-eval",
         "lm-eval-no-bos", "opencompass-swce", "llm-compressive", "llm-compressive-sw"]
    ),
    st.integers(2, 10**9 - 1),
    st.integers(2, 10**9 - 1),
    st.integers(1, 10**9 - 1),
)  # fmt: skip
def test_whatever_the_sizes_a_name_is_of_one_definition(family, context, stride, batch):
    sizes = f"{context}"
    if family in ("sliding", "stream", "opencompass-swce", "llm-compressive-sw"):
        context, stride = max(context, stride + 1), min(context - 1, stride)
        if context > 10**9 - 1 or stride < 2:
            return
        sizes = f"{context}-{stride}" + f"-{batch}" * (family == "llm-compressive-sw")
    protocol = get_protocol(f"{family}-{sizes}")
    again = get_protocol(protocol.name)
    assert again == protocol
    assert again.digest == protocol.digest
    assert len(protocol.name) < 64


@pytest.mark.parametrize(
    "name",
    [
        "", "-", "--", "defualt", "Default", "DISJOINT-512", " default", "default ", "default\n",
        "disjoint-", "disjoint-0", "disjoint-007", "disjoint--5", "disjoint-1.5", "disjoint-512-",
        "disjoint-512\n", "disjoint-5١2", "disjoint-²", "disjoint-٣", "disjoint-1e3", "disjoint-+5",
        "disjoint-1_000", "sliding-a", "sliding-0-0", "sliding-512-0", "sliding-1-2-3-4",
        "lm-eval--5", "lm-eval-512-no-bos", "uncheatable-bos-", "llm-compressive-sw-1-1-1-1",
        "disjoint-1000000000", "disjoint-" + "9" * 5000, "../default", "default/..", "déjà-vu-5",
        "🙂", "\x00", "none-512", "solid-512-512", "a" * 100_000,
    ],
)  # fmt: skip
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(UnknownName, match=r"(?s)unknown protocol .*default.*sliding"):
        get_protocol(name)


@given(st.one_of(st.text(), st.from_regex(re.compile(r"[a-z-]{1,12}(-\d{1,12}){0,4}"))))
def test_any_name_is_a_protocol_or_refused(name):
    try:
        protocol = get_protocol(name)
    except UsageError:  # UnknownName is one
        return
    assert get_protocol(protocol.name) == protocol


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("default", 1, None), "2 or more"), (("default", 0, None), "2 or more"),
        (("default", -5, None), "2 or more"), (("disjoint-512", 0, None), "2 or more"),
        (("lm-eval", 0, None), "2 or more"), (("lm-eval-1-2-3", None, None), "no stride"),
        (("default", 512, 512), "1 to 511"), (("default", 512, 0), "1 to 511"),
        (("sliding", 512, 0), "1 to 511"), (("sliding", 512, -1), "1 to 511"),
        (("sliding-512-512", None, None), "1 to 511"), (("sliding-512-128", None, 512), "1 to 511"),
        (("llm-compressive-sw-512-1", None, None), "stride of 2 or more"),
        (("sliding-512-128-4", None, None), "two sizes"),
        (("disjoint-512-128-4", None, None), "two sizes"),
        (("uncheatable", None, 256), "no stride"), (("lm-eval", 512, 256), "no stride"),
        (("lm-eval-512-256", None, None), "no stride"),
        (("llm-compressive", 512, 256), "no stride"), (("disjoint", None, None), "needs a context"),
        (("disjoint", None, 512), "needs a context"),
        (("own-context", None, 512), "needs a context"),
        (("whole-document", 512, None), "no variants"),
        (("first-5000-chars", 512, None), "no variants"),
        (("first-5000-chars", None, 512), "no variants"), (("chat", 512, None), "no variants"),
        (("solid", 512, None), "no variants"),
    ],
)  # fmt: skip
def test_variants_that_cannot_be_meant_are_refused(asked, says):
    with pytest.raises(UsageError, match=says):
        get_protocol(*asked)


def test_the_hash_follows_the_definition_and_nothing_else():
    protocol = get_protocol("disjoint-512")
    assert dataclasses.replace(protocol, name="x", description="y").digest == protocol.digest
    changes: dict[str, object] = {
        "layout": "single", "context": 513, "stride": 1, "prefix": "bos", "special_tokens": True,
        "scores_first": False, "replaces_first": True, "shortens": True, "max_chars": 1,
        "joined_by": "", "max_stream_bytes": 1, "full_windows": 2,
        "sums": "bfloat16",
    }  # fmt: skip
    names = {field.name for field in dataclasses.fields(ScoringProtocol)}
    # What it decides is a part of the scoring id, and only for texts that spell a control token.
    left_out = {"name", "description", "parses_control"}
    assert names == left_out | set(changes)
    assert dataclasses.replace(protocol, parses_control=True).digest == protocol.digest
    others = {dataclasses.replace(protocol, **{name: value}).digest  # type: ignore[arg-type]
              for name, value in changes.items()}  # fmt: skip
    assert len(others | {protocol.digest}) == len(changes) + 1


def test_no_hash_has_changed():
    assert {protocol.name: protocol.digest for protocol in list_protocols()} == DIGESTS


def test_the_context_follows_the_model_where_the_protocol_says_so():
    assert get_protocol("default").effective_context(512) == 512
    assert get_protocol("default").effective_context(4096) == 2048
    assert get_protocol("default").effective_context(None) == 2048
    assert get_protocol("own-context").effective_context(4096) == 4096
    assert get_protocol("own-context").effective_context(None) == 2048
    assert get_protocol("whole-document").effective_context(4096) == 4096
    assert get_protocol("whole-document").effective_context(None) == 32_768
    assert get_protocol("lm-eval").effective_context(4096) == 4096
    assert get_protocol("lm-eval").effective_context(None) == 2048


@pytest.mark.parametrize(
    "name", ["uncheatable", "disjoint-2048", "sliding", "stream", "opencompass-swce", "lm-eval-513"]
)
def test_a_context_that_the_model_does_not_have_is_refused(name):
    assert get_protocol(name).effective_context(None) == get_protocol(name).context
    with pytest.raises(NotMeasurable, match="--context 512"):
        get_protocol(name).effective_context(512)


def test_a_partition_as_one_piece_is_for_compressors():
    with pytest.raises(NotMeasurable, match="score controls with it"):
        get_protocol("solid").effective_context(None)


def test_streams_and_what_charges_every_token_are_told_apart():
    streams = {p.name for p in list_protocols() if p.is_stream}
    assert streams == {"stream", "opencompass-swce", "llm-compressive", "llm-compressive-sw"}
    every = {p.name for p in list_protocols() if p.charges_every_token}
    assert every.isdisjoint(streams | {"uncheatable", "uncheatable-bos", "lm-eval"})
    assert {"default", "sliding", "chat", "lm-eval-no-bos", "first-5000-chars"} < every


@pytest.mark.parametrize(
    ("nats", "total"),
    [
        # A bfloat16 has 8 significant bits: from 256 on, odd numbers are rounded to even halves.
        ([256.0, 1.0], 256.0),
        ([256.0, 3.0], 260.0),
        ([1.00390625, 1.0], 2.0),  # 1 + 2**-8 is halfway, and rounds to the even 1
        ([1.01171875, 1.0], 2.015625),  # 1 + 3 * 2**-8 rounds up to 1 + 2**-6
        ([100.0] * 41, 4096.0),  # 4100, in steps of 32
    ],
)
def test_sums_in_bfloat16_are_as_by_hand(nats, total):
    assert bf16_sum(np.array(nats)) == total


def test_the_variant_with_sums_in_bfloat16_is_near_the_exact_one(gpt2_folder, batch_of):
    model = CausalLM.load(gpt2_folder, None, Settings(device="cpu"))
    name = "uncheatable-add-eos-32"
    texts = batch_of(*SENTENCES)
    exact = np.array(nats(model, texts, name))
    rounded = np.array(nats(model, texts, f"{name}-bf16"))
    assert exact != pytest.approx(rounded, rel=1e-5) and exact == pytest.approx(rounded, rel=4e-3)
    halves = rounded.astype(np.float32).view(np.uint32) & 0xFFFF
    assert not halves.any()  # each is a bfloat16


def test_the_variant_has_its_own_name_and_digest():
    plain = get_protocol("uncheatable-1024")
    rounded = get_protocol("uncheatable-bf16")
    assert (plain.name, rounded.name) == ("uncheatable", "uncheatable-bf16")
    assert plain.digest != rounded.digest
    assert get_protocol("uncheatable-bf16", context=512).name == "uncheatable-512-bf16"
    with pytest.raises(UsageError, match="default has no variant with sums in bfloat16"):
        get_protocol("default-bf16")
