from __future__ import annotations

import dataclasses

import pytest

from core.errors import NotMeasurable, UnknownName, UsageError
from models.protocols import get_protocol, list_protocols


def test_the_table_lists_the_default_first_and_each_name_gives_its_entry():
    protocols = list_protocols()
    assert protocols[0].name == "default"
    assert {"sliding", "uncheatable", "lm-eval", "disjoint-4096", "disjoint-8192"} < {
        protocol.name for protocol in protocols
    }
    for protocol in protocols:
        assert get_protocol(protocol.name) is protocol
        assert len(protocol.description) > 60
    assert len({protocol.digest for protocol in protocols}) == len(protocols)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (("default", None, None), "default"),
        (("default", 2048, None), "default"),
        (("default", 512, None), "disjoint-512"),
        (("disjoint", 512, None), "disjoint-512"),
        (("default", None, 512), "sliding"),
        (("default", 1024, 256), "sliding-1024-256"),
        (("disjoint-512", None, 128), "sliding-512-128"),
        (("sliding", 1024, None), "sliding-1024-256"),
        (("sliding", None, 256), "sliding-2048-256"),
        (("sliding-2048-512", None, None), "sliding"),
        (("uncheatable", 512, None), "uncheatable-512"),
        (("uncheatable-512", 1024, None), "uncheatable"),
        (("lm-eval", 1024, None), "lm-eval-1024"),
        (("lm-eval-no-bos", 512, None), "lm-eval-no-bos-512"),
    ],
)
def test_variants_have_names_that_read_back(asked, name):
    protocol = get_protocol(*asked)
    assert protocol.name == name
    assert get_protocol(name) == protocol


@pytest.mark.parametrize(
    "name", ["", "defualt", "disjoint", "disjoint-0", "disjoint-007", "lm-eval-1-2-3", "sliding-a"]
)
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(UnknownName, match=r"unknown protocol .*default.*sliding"):
        get_protocol(name)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("default", 1, None), "2 or more"),
        (("default", -5, None), "2 or more"),
        (("default", 512, 512), "1 to 511"),
        (("sliding", 512, 0), "1 to 511"),
        (("uncheatable", None, 256), "no stride"),
        (("lm-eval", 512, 256), "no stride"),
        (("lm-eval-512-256", None, None), "no stride"),
    ],
)
def test_variants_that_cannot_be_meant_are_refused(asked, says):
    with pytest.raises(UsageError, match=says):
        get_protocol(*asked)


def test_the_hash_follows_the_definition_and_nothing_else():
    protocol = get_protocol("disjoint-512")
    assert dataclasses.replace(protocol, name="x", description="y").digest == protocol.digest
    assert dataclasses.replace(protocol, context=513).digest != protocol.digest
    # Written down: a hash that changes makes every cell in the world be scored anew.
    assert get_protocol("default").digest == "051fed7d"
    assert get_protocol("sliding").digest == "f90d1e72"
    assert get_protocol("uncheatable").digest == "70205c3d"
    assert get_protocol("lm-eval").digest == "e9e29cdd"


def test_the_context_follows_the_model_where_the_protocol_says_so():
    assert get_protocol("default").effective_context(512) == 512
    assert get_protocol("default").effective_context(4096) == 2048
    assert get_protocol("default").effective_context(None) == 2048
    assert get_protocol("lm-eval").effective_context(4096) == 4096
    assert get_protocol("lm-eval").effective_context(None) == 2048
    with pytest.raises(NotMeasurable, match="--context 512"):
        get_protocol("uncheatable").effective_context(512)
