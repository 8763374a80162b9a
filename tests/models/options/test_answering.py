import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from core.cells.answers import Answer
from core.corpus.questions import Question
from core.errors import NotMeasurable
from core.settings import Settings
from models import backends
from models.backends import identify
from models.catalogue import ModelEntry
from models.options.answering import LocalAnswerer, answering_id, load_answerer
from models.options.protocols import (
    AnswerProtocol,
    Prompt,
    get_answer_protocol,
    list_answer_protocols,
    prompts_of,
)
from models.scoring.scorer import Losses, ScorerFacts, Tokens
from models.scoring.text_model import text_model_of
from models.scoring.token_scorer import TokenIdentity, TokenScorer
from models.servers.budget import Budget
from tests.models.conftest import byte_level_bpe, llama_config, random_model
from tests.models.conftest import question as any_question

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>\n{% endif %}"
)


def question(number: int = 0, **changes: Any) -> Question:
    options = ("the sand", "早い者勝ち 🙂", "the sand, and the next tide", "привет")
    title = f"Who wins race {number} of the tide?"
    background = f"In race {number}, the tide met"  # tasks show nothing else
    given = {"question_id": f"q{number}", "title": title, "options": options}
    return any_question(**{**given, "background": background, **changes})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = random_model(llama_config(max_position_embeddings=512), 4)
    return save(model, tmp_path_factory.mktemp("answering") / "chatty", TEMPLATE)


def save(model: Any, path: Path, template: str | None = None) -> Path:
    model.save_pretrained(path)
    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_object=byte_level_bpe(), bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = template
    tokenizer.save_pretrained(path)
    return path


def load(path: Path | str, settings: Settings, **changes: Any) -> LocalAnswerer:
    answerer = load_answerer(ModelEntry(name="tiny", location=str(path)), settings)
    assert isinstance(answerer, LocalAnswerer)
    return answerer


class Plain:
    def __init__(self, path: Path) -> None:
        self.model: Any = AutoModelForCausalLM.from_pretrained(path).double()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(path)

    def nats(self, text: str, continuation: str, is_chat: bool) -> tuple[float, int]:
        if is_chat:
            message = [{"role": "user", "content": text}]
            options = {"add_generation_prompt": True, "tokenize": False}
            text = self.tokenizer.apply_chat_template(message, **options)
            continuation = continuation[1:]
        before = self.tokenizer(text.rstrip())["input_ids"]
        own = self.tokenizer(text + continuation)["input_ids"][len(before) :]
        with torch.inference_mode():
            logits = self.model(torch.tensor([before + own])).logits[0].log_softmax(-1)
        return sum(float(logits[len(before) - 1 + i, id_]) for i, id_ in enumerate(own)), len(own)

    def values(self, prompt: Prompt, protocol: AnswerProtocol) -> list[float]:
        found = []
        for each in prompt.continuations:
            nats, num_tokens = self.nats(prompt.text, each, protocol.is_chat)
            prior, _ = self.nats(prompt.blank, each, protocol.is_chat)
            found.append(
                {
                    "none": nats,
                    "token": nats / num_tokens,
                    "byte": nats / len(each[1:].encode()),
                    "unconditional": nats - prior,
                }[protocol.normalisation]
            )
        return found

    def probabilities(self, asked: Question, protocol: AnswerProtocol) -> list[float]:
        prompts = prompts_of(asked, protocol)
        total = [0.0] * len(asked.options)
        for prompt in prompts:
            weights = torch.tensor(self.values(prompt, protocol), dtype=torch.float64).softmax(0)
            for place, weight in zip(prompt.order, weights.tolist(), strict=True):
                total[place] += weight / len(prompts)
        return total


@pytest.fixture(scope="module")
def plain(folder: Path) -> Plain:
    return Plain(folder)


@pytest.fixture(scope="module")
def answerer(folder: Path, settings: Settings) -> LocalAnswerer:
    return load(folder, settings)


@pytest.mark.parametrize(
    "name", [each.name for each in list_answer_protocols() if each.mode != "generate"]
)
def test_every_protocol_has_the_figures_of_its_definition(
    name: str, answerer: LocalAnswerer, plain: Plain
) -> None:
    protocol = get_answer_protocol(name)
    (answer,) = answerer.answer([question()], protocol)
    expected = plain.probabilities(question(), protocol)
    assert answer.probabilities == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert answer.chosen_index == int(np.argmax(expected))
    assert answer.reason is None
    assert math.fsum(answer.probabilities or ()) == pytest.approx(1, abs=1e-12)


def test_an_answer_does_not_depend_on_the_other_questions(answerer: LocalAnswerer) -> None:
    asked = [question(number, background="sand " * (number % 7)) for number in range(20)]
    protocol = get_answer_protocol("text-unconditional-rotated")
    together = list(answerer.answer(asked, protocol))
    assert [each.question_id for each in together] == [each.question_id for each in asked]
    for each, found in zip(asked[::5], together[::5], strict=True):
        (alone,) = answerer.answer([each], protocol)
        assert found.probabilities == pytest.approx(alone.probabilities, rel=1e-5)


class Opinionated:
    max_batch_tokens = None

    def __init__(self, nats: Sequence[float]) -> None:
        self.nats = np.array(nats)

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        return [self.nats[each] for each in targets]


def opinionated(folder: Path, **liked: float) -> LocalAnswerer:
    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(folder)
    nats = np.full(len(tokenizer), 9.0)
    for word, liking in liked.items():
        nats[tokenizer.encode(f" {word}", add_special_tokens=False)[-1]] -= liking
    scorer = TokenScorer(
        TokenIdentity("biased", "1", None, "none"),
        text_model_of(tokenizer),
        Opinionated(nats.tolist()),
        ScorerFacts("", "", 256, {}, None),
    )
    return LocalAnswerer(scorer)


def test_rotations_cancel_a_liking_for_a_place(folder: Path) -> None:
    biased = opinionated(folder, B=3.0)
    (once,) = biased.answer([question()], get_answer_protocol("letter"))
    (rotated,) = biased.answer([question()], get_answer_protocol("letter-rotated"))
    assert once.chosen_index == 1
    assert once.probabilities is not None
    assert once.probabilities[1] > 0.8
    assert rotated.probabilities == pytest.approx([0.25] * 4)
    # The average hides the preference for a place, which the places show.
    assert rotated.place_probabilities == pytest.approx(once.probabilities)
    assert once.place_probabilities == once.probabilities


def test_what_is_liked_anyway_is_taken_out_by_the_unconditional(folder: Path) -> None:
    biased = opinionated(folder, sand=5.0)
    options = ("one", "sand", "two")
    asked = [question(options=options)]
    (liked,) = biased.answer(asked, get_answer_protocol("text"))
    (even,) = biased.answer(asked, get_answer_protocol("text-unconditional"))
    assert liked.chosen_index == 1
    assert even.probabilities == pytest.approx([1 / 3] * 3)
    assert even.chosen_index == 0  # the first of those that are as likely


def test_the_blank_prompt_is_scored_once_for_each_option(
    answerer: LocalAnswerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    scorer = answerer._scorer
    score = scorer.score

    def counting(prompts: Any) -> Any:
        asked.extend(each for p in prompts if p.text == "Answer:" for each in p.continuations)
        return score(prompts)

    monkeypatch.setattr(scorer, "score", counting)
    many = [question(number, options=("Yes indeed", "Not at all")) for number in range(30)]
    for _ in range(2):
        assert len(list(answerer.answer(many, get_answer_protocol("text-unconditional")))) == 30
    assert sorted(asked) == [" Not at all", " Yes indeed"]


def test_what_cannot_be_asked_is_answered_with_a_reason(
    answerer: LocalAnswerer, gpt2_folder: str, settings: Settings
) -> None:
    many = question(1, options=tuple(f"option {number}" for number in range(27)))
    blank = question(2, options=("Yes", " \n"))
    asked = [question(0), many, blank, question(3)]
    letters = list(answerer.answer(asked, get_answer_protocol("letter")))
    assert [each.reason for each in letters] == [None, "too_many_options", None, None]
    assert letters[1] == Answer("q1", None, None, "too_many_options")
    texts = list(answerer.answer(asked, get_answer_protocol("text")))
    assert [each.reason for each in texts] == [None, None, "no_tokens", None]
    assert len(texts[1].probabilities or ()) == 27
    short = load(gpt2_folder, settings)  # of 48 tokens
    (cut,) = short.answer([question()], get_answer_protocol("letter"))
    assert (cut.reason, cut.chosen_index is None) == ("truncated", False)
    long = question(options=("Yes", "x" * 60))
    (refused,) = short.answer([long], get_answer_protocol("text"))
    assert refused == Answer("q0", None, None, "too_long")


def test_a_likelihood_that_is_no_number_is_no_choice(folder: Path) -> None:
    (answer,) = opinionated(folder, A=math.nan).answer([question()], get_answer_protocol("letter"))
    assert answer == Answer("q0", None, None, "non_finite")


def test_protocols_that_do_not_fit_the_model_are_refused(
    answerer: LocalAnswerer, llama_folder: str, settings: Settings
) -> None:
    with pytest.raises(NotMeasurable, match="only write"):
        answerer.answering_id(get_answer_protocol("generate"))
    plain = load(llama_folder, settings)
    with pytest.raises(NotMeasurable, match="chat template"):
        list(plain.answer([question()], get_answer_protocol("letter-chat")))
    control = ModelEntry(name="control:zlib", kind="control", location="zlib")
    with pytest.raises(NotMeasurable, match="compressor"):
        backends.load_answerer(control, settings, Budget())
    with pytest.raises(NotMeasurable, match="compressor"):
        answering_id(identify(control, settings), get_answer_protocol("letter"))


def test_a_task_is_continued_from_its_background_alone() -> None:
    (prompt,) = prompts_of(question(), get_answer_protocol("task-text-byte"))
    assert prompt.text == "In race 0, the tide met"
    assert prompt.continuations[0] == " the sand"
    (lettered,) = prompts_of(question(), get_answer_protocol("task-letter"))
    assert "Text: In race 0, the tide met\nContinuations:\nA. the sand\n" in lettered.text
    assert "wins" not in lettered.text and "2024" not in lettered.text


def test_answers_are_named_after_all_that_decides_them(
    answerer: LocalAnswerer, folder: Path, gpt2_folder: str, settings: Settings
) -> None:
    names = [each for each in list_answer_protocols() if each.mode != "generate"]
    ids = [answerer.answering_id(each) for each in names]
    assert len(set(ids)) == len(ids)
    assert all(len(each) == 8 for each in ids)
    entry = ModelEntry(name="tiny", location=str(folder))
    found = identify(entry, settings)  # without the weights
    assert [answering_id(found, each) for each in names] == ids
    assert answerer.revision == found.revision
    half = identify(entry, settings.model_copy(update={"dtype": "bfloat16"}))
    assert answering_id(half, names[0]) != ids[0]
    assert load(gpt2_folder, settings).answering_id(names[0]) != ids[0]
