import contextlib
import io
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from core.errors import NotMeasurable
from core.settings import Settings
from models.options.branches import OneByOne, SharedCache, SharedRow, Tree
from models.options.scoring import OptionScore, OptionScorer, TextPrompt, tokenize_options
from models.scoring.forward import Forward
from models.scoring.scorer import DeviceFull, Losses, Tokens
from models.scoring.text_model import text_model_of
from models.scoring.token_scorer import CausalLM
from tests.models.conftest import random_model

GOLDEN = Path(__file__).parents[3] / ".." / "shared" / "data" / "golden" / "llama"

TEXT = """tide mark sand next washes away model reads what was written before text goes on being
naïver Café 3,50 € 早い者勝ち Ещё раз привет мир 🙂 yes no more than 2% rise fall by June é"""
WORDS = TEXT.split()


def make_prompts(count: int, num_words: int, seed: int = 0) -> list[TextPrompt]:
    generator = random.Random(seed)

    def words(most: int) -> str:
        return " ".join(generator.choices(WORDS, k=generator.randint(1, most)))

    prompts = []
    for _ in range(count):
        options = [words(6) for _ in range(generator.randint(2, 4))]
        options += [f"{options[0]} {words(3)}", generator.choice(options), "A"]
        generator.shuffle(options)
        text = f"Question: {words(num_words)}\nAnswer:" + generator.choice(["", "", " ", "\n"])
        prompts.append(TextPrompt(text, tuple(f" {option}" for option in options)))
    return prompts


def load(folder: str | Path, settings: Settings) -> CausalLM:
    return CausalLM.load(str(folder), None, settings)


def scorer_of(model: CausalLM, budget: int = 512) -> OptionScorer:
    return OptionScorer(model.name, model.text_model, model.engine, model.context, budget)


def nats_of(scores: Sequence[Sequence[OptionScore]]) -> list[float]:
    return [score.log_probability for own in scores for score in own]


def lm_eval_nats(folder: str | Path, prompts: Sequence[TextPrompt]) -> list[float]:
    pytest.importorskip("lm_eval", reason="lm-eval is not installed: pip install -e '.[bench]'")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    pairs = [(prompt.text, each) for prompt in prompts for each in prompt.continuations]
    with contextlib.redirect_stderr(io.StringIO()):
        peer: Any = HFLM(
            pretrained=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
            tokenizer=AutoTokenizer.from_pretrained(folder),
            batch_size=16,
            device="cpu",
        )
        requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
        return [found[0] for found in peer.loglikelihood(requests, disable_tqdm=True)]


@pytest.mark.parametrize(
    ("fixture", "num_words"),
    [("llama_folder", 20), ("gpt2_folder", 12), ("starting_folder", 20), ("bytes_folder", 7)],
)
def test_thirty_questions_have_lm_eval_s_figures(fixture, num_words, request, settings):
    """Some prompts do not fit into the context of 48 to 64 tokens."""
    folder = request.getfixturevalue(fixture)
    prompts = make_prompts(30, num_words)
    scores = list(scorer_of(load(folder, settings)).score(prompts))
    assert 2 <= sum(any(score.is_truncated for score in own) for own in scores) < 28
    kept = [not any(score.is_too_long for score in own) for own in scores]
    asked = [prompt for prompt, fits in zip(prompts, kept, strict=True) if fits]
    assert len(asked) > 22
    found = nats_of([own for own, fits in zip(scores, kept, strict=True) if fits])
    np.testing.assert_allclose(found, lm_eval_nats(folder, asked), rtol=0, atol=1e-4)


@pytest.mark.skipif(not GOLDEN.exists(), reason="needs ../shared/data/golden")
def test_the_golden_model_has_lm_eval_s_figures(settings):
    prompts = make_prompts(20, 60, seed=1)
    found = nats_of(list(scorer_of(load(GOLDEN, settings)).score(prompts)))
    np.testing.assert_allclose(found, lm_eval_nats(GOLDEN, prompts), rtol=0, atol=1e-4)


VOCABULARY = 400
_LAYERS: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
_SMALL = _LAYERS | {"intermediate_size": 48}
_GQA = _SMALL | {"num_key_value_heads": 2}
# Model type: its sizes, whether a masked row serves it, and whether its own cache does.
FAMILIES: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "llama": (_SMALL, True, True),
    "gpt2": ({"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128}, True, True),
    "gpt_neox": (_SMALL, True, True),
    "gemma2": (_GQA | {"head_dim": 16, "final_logit_softcapping": 2.0}, True, True),
    "mixtral": (_GQA | {"num_local_experts": 4}, True, True),
    "qwen2": (_GQA, True, True),
    "opt": (
        _LAYERS | {"ffn_dim": 48, "word_embed_proj_dim": 32, "max_position_embeddings": 128},
        True,
        True,
    ),
    # A window that the probe is longer than: a mask of ours would take its place.
    "mistral": (_GQA | {"sliding_window": 16}, False, True),
    "gemma3_text": (_GQA | {"head_dim": 16, "sliding_window": 8}, False, True),
    # Positions are read off the mask.
    "bloom": ({"hidden_size": 32, "n_layer": 2, "n_head": 2}, False, True),
    "mpt": ({"d_model": 32, "n_layers": 2, "n_heads": 2}, False, True),
    # A running state.
    "mamba": ({"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}, False, True),
    "rwkv": ({"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32}, False, True),
    # Its cache cannot be continued; options are scored one by one.
    "recurrent_gemma": (_GQA | {"lru_width": 32, "attention_window_size": 16}, False, False),
}


def make_model(kind: str) -> PreTrainedModel:
    """Make a random model; with larger weights, models with a state amplify rounding errors."""
    config = AutoConfig.for_model(kind, vocab_size=VOCABULARY, **FAMILIES[kind][0])
    return random_model(config, 2 if kind in ("mamba", "rwkv", "recurrent_gemma") else 4)


def make_trees(*shapes: tuple[int, Sequence[int]], seed: int = 0) -> list[Tree]:
    generator = np.random.default_rng(seed)

    def draw(length: int) -> Tokens:
        return generator.integers(0, VOCABULARY, length)

    trees = []
    for length, lengths in shapes:
        branches = [draw(each) for each in lengths]
        trees.append(Tree(draw(length), (*branches, np.append(branches[0], draw(2)))))
    return trees


SHAPES = ((40, (3, 1, 5, 2)), (25, (1,)), (7, (1, 1)), (60, (4, 4)))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_has_the_figures_of_its_options_one_by_one(kind):
    forward = Forward(make_model(kind))
    row, cache = SharedRow(forward, None), SharedCache(forward)
    assert (row.is_exact, cache.is_exact) == FAMILIES[kind][1:]
    trees = make_trees(*SHAPES)
    expected = OneByOne(forward).losses(trees)
    for way in (row, cache):
        taken = [number for number, tree in enumerate(trees) if way.takes(tree)]
        for number, found in zip(taken, way.losses([trees[n] for n in taken]), strict=True):
            for ours, theirs in zip(found, expected[number], strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    # Branches of one token need no mask, so any model can score them at once.
    letters = make_trees((30, (1,)))[0]
    assert row.takes(Tree(letters.prefix, letters.branches[:1] * 3))


class FormerLlama(LlamaModel):
    """A body whose cache has the former name, as in the code of many checkpoints."""

    def forward(self, input_ids=None, past_key_values=None, use_cache=None, **_):
        return super().forward(input_ids, cache=past_key_values, use_cache=use_cache)


def test_a_prompt_is_read_once_by_code_with_the_former_name_of_a_cache():
    model = make_model("llama")
    former = FormerLlama(model.config)
    former.load_state_dict(model.model.state_dict())
    model.model = former.eval()
    cache = SharedCache(Forward(model))
    assert cache.is_exact and not cache.is_stepwise


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bloom", "mistral"])
def test_half_precision_has_the_same_ways(kind):
    forward = Forward(make_model(kind).to(torch.bfloat16))
    assert (SharedRow(forward, None).is_exact, SharedCache(forward).is_exact) == FAMILIES[kind][1:]


def test_rows_longer_than_a_window_are_not_given_a_mask():
    config = FAMILIES["mistral"][0] | {"sliding_window": 64}
    model = random_model(AutoConfig.for_model("mistral", vocab_size=VOCABULARY, **config), 1)
    row = SharedRow(Forward(model), None)
    assert row.is_exact
    short, long = make_trees((50, (3, 4)), (60, (3, 4)))
    assert (row.takes(short), row.takes(long)) == (True, False)
    assert not SharedRow(Forward(make_model("gpt2")), 60).takes(short._replace(prefix=long.prefix))


@pytest.mark.parametrize("budget", [1, 64, 4096])
def test_prompts_score_alike_whatever_the_budget_and_their_order(budget, llama_folder, settings):
    model = load(llama_folder, settings)
    prompts = make_prompts(12, 12, seed=2)
    expected = [next(scorer_of(model).score([prompt])) for prompt in prompts]
    order = random.Random(budget).sample(range(len(prompts)), len(prompts))
    found = list(scorer_of(model, budget).score([prompts[place] for place in order]))
    for place, own in zip(order, found, strict=True):
        for ours, theirs in zip(own, expected[place], strict=True):
            assert ours.log_probability == pytest.approx(theirs.log_probability, rel=1e-6)
            assert ours[1:] == theirs[1:]


def test_the_prompt_is_read_once(llama_folder, settings, monkeypatch):
    """Of 5 options of 4 tokens after 40, a row has 40 + 5 * 3 inputs, and not 5 * 43."""
    model = load(llama_folder, settings)
    scorer = scorer_of(model)
    read: list[int] = []
    hidden = Forward.hidden

    def counting(self: Forward, ids: torch.Tensor, **options: torch.Tensor) -> torch.Tensor:
        read.append(ids.numel())
        return hidden(self, ids, **options)

    monkeypatch.setattr(Forward, "hidden", counting)
    (tree,) = make_trees((40, (4, 4, 4, 4, 4)))
    scorer._run([Tree(tree.prefix, tree.branches[:5])])
    assert read == [40 + 5 * 3]


def test_what_cannot_be_run_says_so(gpt2_folder, startless_folder, settings):
    model = load(gpt2_folder, settings)  # of 48 tokens
    options = (" fits", " " + "x" * 48, " " + "x" * 49, "")
    (scores,) = scorer_of(model).score([TextPrompt("one two three four", options)])
    assert [score.is_too_long for score in scores] == [False, True, True, False]
    assert [score.is_truncated for score in scores][0] is False
    assert np.isnan([scores[1].log_probability, scores[3].log_probability]).all()
    assert scores[3].num_tokens == 0
    startless = load(startless_folder, settings)
    with pytest.raises(NotMeasurable, match="needs a start token"):
        list(scorer_of(startless).score([TextPrompt("", (" a", " b"))]))


def test_a_start_token_in_the_text_is_not_added_again(starting_folder, settings):
    text_model = load(starting_folder, settings).text_model
    pairs = tokenize_options(
        text_model,
        [
            TextPrompt("<s>one", (" a",)),
            TextPrompt("one", (" a",)),
            TextPrompt("", ("<s> a", " a")),
        ],
        None,
    )
    assert [pair.prefix.tolist().count(0) for own in pairs for pair in own] == [1, 1, 1, 1]
    assert pairs[2][0].continuation.tolist() == pairs[2][1].continuation.tolist()


def test_a_token_with_the_prompt_s_end_and_the_whole_option() -> None:
    """The vocabulary has the token `:A`. In lm-eval, no token is left for the option."""
    tokens = ["<s>", "</s>", "x", ":", "A", "B", ":A"]
    backend = Tokenizer(models.BPE({t: n for n, t in enumerate(tokens)}, [(":", "A")]))
    text_model = text_model_of(PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>"))
    [own] = tokenize_options(text_model, [TextPrompt("x:", ("A", "B", "AB"))], None)
    assert [pair.prefix.tolist() for pair in own] == [[2, 3]] * 3
    assert [pair.continuation.tolist() for pair in own] == [[4], [5], [5]]


class Small:
    max_batch_tokens = None

    def __init__(self, room: int) -> None:
        self.room = room
        self.batches: list[int] = []

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        size = len(inputs) * max(map(len, inputs))
        if size > self.room:
            raise DeviceFull("full")
        self.batches.append(size)
        return [np.full(len(each), np.log(VOCABULARY)) for each in targets]


def test_a_full_device_gets_smaller_batches(llama_folder, settings):
    text_model = load(llama_folder, settings).text_model
    engine = Small(100)
    scorer = OptionScorer("small", text_model, engine, 64, budget=4096)
    prompts = make_prompts(20, 4, seed=4)
    for own in scorer.score(prompts):
        for score in own:
            assert score.log_probability == pytest.approx(-score.num_tokens * np.log(VOCABULARY))
    assert max(engine.batches) <= 100
    assert scorer.budget <= 100
    with pytest.raises(NotMeasurable, match="small: a prompt of .* tokens does not fit"):
        list(OptionScorer("small", text_model, Small(5), 64, budget=64).score(prompts))


def test_a_full_device_gets_the_branches_of_a_tree_by_themselves(llama_folder, settings):
    model = load(llama_folder, settings)
    scorer = scorer_of(model)
    (row, *_) = scorer.ways
    losses: Callable[..., list[list[Losses]]] = row.losses

    class Narrow:
        def takes(self, tree: Tree) -> bool:
            return True

        def losses(self, trees: Sequence[Tree]) -> list[list[Losses]]:
            if len(trees) > 1 or len(trees[0].branches) > 1:
                raise DeviceFull("full")
            return losses(trees)

    prompts = make_prompts(3, 4, seed=5)
    expected = nats_of(list(scorer.score(prompts)))
    scorer.ways = [Narrow()]
    np.testing.assert_allclose(nats_of(list(scorer.score(prompts))), expected, rtol=1e-6)


def test_very_many_options_are_run_in_parts(llama_folder, settings):
    model = load(llama_folder, settings)
    options = tuple(f" option {number} of many" for number in range(40))
    (scores,) = scorer_of(model, budget=64).score([TextPrompt("Which?", options)])
    alone = scorer_of(model)
    few = [next(alone.score([TextPrompt("Which?", (each,))]))[0] for each in options]
    np.testing.assert_allclose(nats_of([scores]), nats_of([few]), rtol=1e-6)
