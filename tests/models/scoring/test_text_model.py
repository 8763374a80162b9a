import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from core.errors import NotMeasurable
from models.scoring.protocols import get_protocol
from models.scoring.text_model import TextModel, text_model_of

CHAT = (
    "{{ bos_token }}{% for message in messages %}[{{ message.role }}]{{ message.content }}"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture
def backend(llama_folder: str) -> Tokenizer:
    return PreTrainedTokenizerFast.from_pretrained(llama_folder).backend_tokenizer


def tokenizer_of(backend: Tokenizer, **options: object) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=backend, **options)


def read(backend: Tokenizer, **options: object) -> TextModel:
    return text_model_of(tokenizer_of(backend, **options))


def adding_bos(backend: Tokenizer) -> Tokenizer:
    backend.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return backend


def test_the_start_token_is_bos_else_eos_else_none(backend):
    both = read(backend, bos_token="<s>", eos_token="</s>")
    assert (both.start_token, both.bos_token, both.facts.start_token) == (0, 0, "<s>")
    eos = read(backend, eos_token="</s>")
    assert (eos.start_token, eos.bos_token, eos.facts.start_token) == (1, None, "</s>")
    none = read(backend)
    assert (none.start_token, none.bos_token, none.facts.start_token) == (None, None, None)
    assert both.vocabulary_size == both.facts.vocabulary_size == 400


def test_bos_as_a_text_is_two_tokens_where_the_tokenizer_adds_it(backend):
    assert read(backend, bos_token="<s>").encoded_bos == (0,)
    assert read(adding_bos(backend), bos_token="<s>").encoded_bos == (0, 0)
    assert read(backend, eos_token="</s>").encoded_bos == ()


def test_padding_that_the_tokenizer_s_file_asks_for_is_no_part_of_bos(backend):
    backend.enable_padding(length=20, pad_token="</s>", pad_id=1)
    backend.enable_truncation(10)
    assert read(backend, bos_token="<s>").encoded_bos == (0,)


@pytest.mark.parametrize(
    ("name", "both", "eos", "none"),
    [
        ("default", (0,), (1,), ()), ("sliding", (0,), (1,), ()), ("stream", (0,), (1,), ()),
        ("whole-document", (0,), (1,), ()), ("uncheatable", (), (), ()),
        ("uncheatable-bos", (0, 0), None, None), ("lm-eval", (0,), (1,), None),
        ("lm-eval-no-bos", (0,), (1,), None), ("opencompass-swce", (), (), ()),
        ("llm-compressive", (0,), (), ()), ("llm-compressive-sw", (), (), ()),
        ("chat", None, None, None),
    ],
)  # fmt: skip
def test_what_precedes_a_window_s_text(name, both, eos, none, backend):
    models = {
        "eos": (read(backend, eos_token="</s>"), eos),
        "none": (read(backend), none),
        "both": (read(adding_bos(backend), bos_token="<s>", eos_token="</s>"), both),
    }
    for model, expected in models.values():
        if expected is None:
            with pytest.raises(NotMeasurable, match="the tokenizer has none; use the default"):
                model.prefix(get_protocol(name))
        else:
            assert model.prefix(get_protocol(name)) == expected


def test_chat_is_what_the_template_says_up_to_the_answer(backend):
    for each in (backend, adding_bos(backend)):
        tokenizer = tokenizer_of(each, bos_token="<s>", chat_template=CHAT)
        expected = tokenizer("<s>[user][assistant]", add_special_tokens=False)["input_ids"]
        prefix = text_model_of(tokenizer).prefix(get_protocol("chat"))
        assert list(prefix) == expected
        assert list(prefix) == tokenizer.apply_chat_template(
            [{"role": "user", "content": ""}], add_generation_prompt=True, return_dict=False
        )
        assert prefix.count(0) == 1


def test_a_template_that_states_the_day_states_the_same_every_day(backend):
    clock = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}"
    tokenizer = tokenizer_of(backend, chat_template=clock)
    prefix = text_model_of(tokenizer).prefix(get_protocol("chat"))
    assert tokenizer.decode(prefix) == "26 Jul 2024"


def test_of_several_templates_the_default_one_is_taken(backend):
    several = {"default": CHAT, "tool_use": "{{ raise_exception('no') }}"}
    model = read(backend, bos_token="<s>", chat_template=several)
    assert model.prefix(get_protocol("chat"))[0] == 0
    del several["default"]
    model = read(backend, bos_token="<s>", chat_template=several)
    with pytest.raises(NotMeasurable, match="chat template"):
        model.prefix(get_protocol("chat"))


@pytest.mark.parametrize(
    "template",
    [
        "{{ raise_exception('the first turn needs words') }}",
        "{% for %}",
        "{{ messages[5].content }}",
        "{{ messages[0].content.upper.nope.nope }}",
        "{{ 1 // 0 }}",
        "{{ messages[0]['content'] + 5 }}",
        "{{ [].pop() }}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ ''.__class__.__mro__ }}",
        "{% include 'elsewhere' %}",
        "{% if false %}nothing at all{% endif %}",
        "{{ '\ud800' }}",
    ],
)
def test_a_template_that_cannot_be_used_is_not_measurable(template, backend):
    model = read(backend, bos_token="<s>", chat_template=template)
    with pytest.raises(NotMeasurable, match="chat template"):
        model.prefix(get_protocol("chat"))


PARTS = (
    "{% for message in messages %}[{{ message.role }}]{% for part in message.content %}"
    "{{ part.text }}{% endfor %}{% endfor %}[assistant]"
)


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        (CHAT, "<s>[user]Will it rain?\n[assistant]"),
        (CHAT.replace("message.content", "message.content | trim"), "<s>[user]Will it rain?[assis"),
        (PARTS, "[user]Will it rain?\n[assistant]"),
        ("{{ messages[0]['content'][0]['text'] }}", "Will it rain?\n"),
    ],
)
def test_a_template_that_wants_parts_gets_the_question_as_one(template, shown, backend):
    model = read(backend, bos_token="<s>", chat_template=template)
    assert model.chat_text("Will it rain?\n").startswith(shown)


@pytest.mark.parametrize(
    "template",
    ["[user][assistant]", "{{ messages[0].content[:4] }}", "{{ messages[0].content | upper }}"],
)
def test_a_template_that_does_not_show_the_question_is_not_measurable(template, backend):
    model = read(backend, bos_token="<s>", chat_template=template)
    with pytest.raises(NotMeasurable, match="chat template does not"):
        model.chat_text("Will it rain?")


def test_byte_tokens_are_the_256_that_are_reserved_for_bytes(bytes_folder, llama_folder):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(bytes_folder)
    model = text_model_of(tokenizer)
    assert model.facts.has_byte_tokens
    names = tokenizer.convert_ids_to_tokens(model.byte_tokens.tolist())
    assert names == [f"<0x{byte:02X}>" for byte in range(256)]
    raw = bytes(range(256)) + b"tide"
    tokens = model.tokenize_bytes(raw)
    assert tokens.ids.tolist() == [model.byte_tokens[byte] for byte in raw]
    assert tokens.bytes.tolist() == list(range(len(raw) + 1))
    assert set(tokens.chars.tolist()) == {0}
    assert len(model.tokenize_bytes(b"").ids) == 0
    other = text_model_of(PreTrainedTokenizerFast.from_pretrained(llama_folder))
    assert other.byte_tokens is None
    assert not other.facts.has_byte_tokens
    assert other.tokenize_bytes(raw) is None


def test_with_one_byte_token_missing_there_are_none(bytes_folder):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(bytes_folder)
    state = tokenizer.backend_tokenizer.to_str().replace("<0x7F>", "<0x7f>")
    assert read(Tokenizer.from_str(state)).byte_tokens is None
