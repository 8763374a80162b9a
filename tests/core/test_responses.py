import pytest

from core.responses import answering_part, ends_in_thought, open_thought, thinking_tokens

# Opening and closing marks as the models' own chat templates have them.
MARKS = [
    ("<think>", "</think>"),  # DeepSeek-R1, Qwen3, Kimi-K2-Thinking, GLM-4.5
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),  # EXAONE-Deep
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("<longcat_think>", "</longcat_think>"),  # LongCat-Flash-Thinking
    ("[THINK]", "[/THINK]"),  # Magistral, Ministral
    ("◁think▷", "◁/think▷"),  # Kimi-VL
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A Reasoning
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # Sky-T1, OpenThinker
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    ("<unused94>thought\n", "<unused95>"),  # MedGemma
    ("<|channel>thought\n", "<channel|>"),  # Gemma 4
    (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),  # gpt-oss
    ("analysis", "assistantfinal"),  # gpt-oss, without its control tokens
    ("Here is my thought process:", "Here is my response:"),  # Granite 3.2
    ("<|im_start|>think\n", "<|im_start|>answer\n"),  # s1
    ("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),  # Apriel
    ("<antThinking>", "</antThinking>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("<|think_start|>", "<|think_end|>"),
    ("<\uff5cbegin\u2581of\u2581thinking\uff5c>", "<\uff5cend\u2581of\u2581thinking\uff5c>"),
    ("[BEGIN_THINK]", "[END_THINK]"),
    ("[REASONING]", "[/REASONING]"),
    ("<analysis>", "</analysis>"),
    ("<cot>", "</cot >"),
    ('<think time="3">', "</think\n>"),
    ("&lt;think&gt;", "&lt;/think&gt;"),  # a server that escapes markup
    ("<seed:cot_budget_reflect>", "</seed:cot_budget_reflect>"),  # Seed-OSS
    ("<start_working_out>", "<end_working_out>"),  # of models tuned by Unsloth's notebooks
    ("<thinking_process>", "</thinking_process>"),
    ("<reasoning-steps>", "</reasoning-steps>"),
    ("<chain-of-thought>", "</chain-of-thought>"),
    ("<scratch_pad>", "</scratch_pad>"),
    ("<|begin_internal_thought|>", "<|end_internal_thought|>"),
    ("【思考】", "【/思考】"),
    ("<think>", "<//think>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),  # Kimi K3
    ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
    ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),  # PLaMo 3
    ("<|think:start|>", "<|think:end|>"),  # Solar Open 2
    ("<ifm|think_faster>", "</ifm|think_faster>"),  # K2 Horizon
    ("<think:opensource>", "</think:opensource>"),  # Hunyuan 3
    ("[unused16]", "[unused17]"),  # openPangu
    ("<start_of_thought>", "<end_of_thought>"),
    ("<thinking_start>", "<thinking_end>"),
    ("<\uc0dd\uac01>", "</\uc0dd\uac01>"),
    ("\uff1cthink\uff1e", "\uff1c/think\uff1e"),
    ("<M2_7think>", "</M2_7think>"),
]


@pytest.mark.parametrize(("opens", "closes"), MARKS)
def test_what_is_thought_is_no_answer(opens: str, closes: str) -> None:
    thought = "The answer is A. Or is it?"
    assert answering_part(f"{opens}{thought}{closes}B").strip() == "B"
    assert answering_part(f"{opens}{thought}").strip() == ""  # cut off
    assert answering_part(f"{opens}").strip() == ""
    if opens != "analysis":
        assert ends_in_thought(opens + thought)
        assert not ends_in_thought(opens + thought + closes)
        assert answering_part(f"{thought}{closes}B").strip() == "B"  # the prompt has the opening


STEPS = ("step", "steps", "plan", "rationale", "explanation", "internal", "draft", "verify")


@pytest.mark.parametrize("name", STEPS)
def test_steps_and_grounds_are_no_answer(name: str) -> None:
    steps = f"<{name}>The answer is A.</{name}>\n"
    assert answering_part(f"{steps}B").strip() == "B"
    assert answering_part(f"{steps}<count>9</count>{steps}<answer>B</answer>").strip() == (
        "<answer>B</answer>"
    )
    assert answering_part(f"B\n{steps}").strip() == "B"
    assert answering_part(f"<{name}>The answer is A.") == ""  # cut off
    assert answering_part(f"<think>x</think>B</{name}>") == f"B</{name}>"
    assert answering_part(steps) == steps  # the answer is in the last step, or nowhere


def test_steps_have_numbers_and_details_have_a_type() -> None:
    assert answering_part("<step 1>A</step><Step 2 of 2>A</Step>B") == "B"
    assert answering_part("<step1>A</step1>B") == "B"
    page = '<details type="reasoning" done="true"><summary>Thought</summary>A</details>\nB'
    assert answering_part(page).strip() == "B"
    for text in ("<details><summary>B</summary>x</details>", "steps > plan <step-up>B</step-up>"):
        assert answering_part(text) == text


def test_all_channels_but_the_final_one_are_thoughts() -> None:
    answer = (
        "<|channel|>analysis<|message|>A?<|end|><|start|>assistant<|channel|>commentary"
        "<|message|>Perhaps C.<|end|><|start|>assistant<|channel|>final <|constrain|>json"
        "<|message|>B<|return|>"
    )
    assert answering_part(answer) == "B"
    cut = answer.partition("<|start|>assistant<|channel|>final")[0]
    assert answering_part(cut) == ""
    assert answering_part("<|channel|>final<|message|>B<|return|>") == "B"


def test_channels_without_control_tokens_may_begin_with_a_small_letter() -> None:
    assert answering_part("analysisthe user asks for A or B.assistantfinalB") == "B"
    assert answering_part("analysis We think of A.assistantfinal B").strip() == "B"
    assert answering_part("analysis of the polls: B") == "analysis of the polls: B"


def test_thoughts_that_open_or_close_twice() -> None:
    assert answering_part("</think>It may be A.</think>B") == "B"
    assert answering_part("<think>A<think>A</think>A</think>B") == "B"
    assert answering_part("<think>\n<think>A</think>B") == "B"
    assert answering_part("<overthink>B</overthink>") == "<overthink>B</overthink>"


def test_parts_of_an_answer_are_kept() -> None:
    assert answering_part("<|START_RESPONSE|>B<|END_RESPONSE|>") == "B"
    assert answering_part("B<reason>the polls</reason>") == "B"
    for text in ("B [reasoning] the polls", "analysis of the polls: B", "I think B", "<b>B</b>"):
        assert answering_part(text) == text


def test_the_mark_at_the_end_of_a_prompt_opens_reasoning() -> None:
    assert open_thought("User: x?\nAssistant: <think>\n") == "<think>"
    assert open_thought("Assistant: [THINK]") == "[THINK]"
    assert open_thought("Assistant: <think>\n\n</think>\n\n") == ""
    assert open_thought("Use <think> to think.\nAssistant:") == ""
    assert open_thought("x") == ""


def test_control_tokens_of_reasoning_are_named() -> None:
    mistral = ["<s>", "</s>", "[INST]", "[THINK]", "[/THINK]"]
    assert thinking_tokens(mistral) == {"[THINK]", "[/THINK]"}
    harmony = ["<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|endoftext|>"]
    assert thinking_tokens(harmony) == set(harmony[:4])
    assert thinking_tokens(["<|end|>", "<|endoftext|>", "<s>"]) == frozenset()


def test_a_mark_at_the_end_of_an_answer_is_no_part_of_it() -> None:
    assert answering_part("[BEGIN FINAL RESPONSE]\nB\n[END FINAL RESPONSE]").strip() == "B"
    steps = "The answer is B. Here are my reasoning steps:\nA was wrong."
    assert answering_part(steps) == steps  # only the beginning of a response opens a thought


def test_messages_of_roles_that_think() -> None:
    begun = "<|start|>assistant to=self<|message|>A? Or C?"  # Muse Glimmer
    for opening in (begun, begun.removeprefix("<|start|>assistant ")):
        assert answering_part(f"{opening}<|eom|>") == ""
        for header in ("<|start|>assistant to=user<|message|>", "<|start|>assistant<|message|>"):
            assert answering_part(f"{opening}<|eom|>{header}B<|eot|>") == "B"
    assert answering_part("<|start|>assistant to=user<|message|>B<|eot|>") == "B"
    next_turn = "<|eot|><|start|>user<|message|>q<|eot|><|start|>assistant<|message|>C"
    assert answering_part(f"B{next_turn}") == "B"
    thought = "<|im_start|>assistant/think\nA? Or C?"  # HyperCLOVA X
    assert answering_part(thought) == ""
    assert answering_part(f"{thought}<|im_end|>\n<|im_start|>assistant\nB<|im_end|>") == "B"
    assert answering_part("B<|im_end|>\n<|im_start|>assistant\nC") == "B"
    assert answering_part("<|open|>response<|sep|>B<|close|>response<|sep|><|end_of_msg|>") == "B"


def test_a_note_on_the_budget_does_not_end_reasoning() -> None:
    note = "<seed:cot_budget_reflect>Half is left.</seed:cot_budget_reflect>"
    begun = f"<seed:think>A? {note} Or C?"
    assert answering_part(begun) == ""
    assert ends_in_thought(begun)
    assert answering_part(f"{begun} {note}</seed:think>B") == "B"


def test_a_prompt_may_open_a_channel_that_thinks() -> None:
    prompt = "q<|end|><|start|>assistant<|channel|>analysis<|message|>"
    assert open_thought(prompt) == "<|channel|>analysis"
    assert open_thought(prompt.replace("analysis", "final")) == ""


def test_control_tokens_of_roles_that_think_are_named() -> None:
    kimi = ["<|open|>", "<|close|>", "<|sep|>", "[BOS]", "<|end_of_msg|>"]
    assert thinking_tokens(kimi) == set(kimi[:3])
    plamo = ["<|plamo:begin_", "<|plamo:end_", ":plamo|>", "<|plamo:bos|>"]
    assert thinking_tokens(plamo) == set(plamo[:3])
    muse = ["<|start|>", "<|message|>", "<|eom|>", "<|eot|>", "<|bos|>"]
    assert thinking_tokens(muse) == set(muse[:4])
