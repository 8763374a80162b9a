"""What a model wrote, and the letter that it chose."""

from __future__ import annotations

import pytest

from models.extraction import extract_choice
from models.question_prompt import LETTERS

OPTIONS = ("Yes", "No", "Not before June", "No, and it is annulled")
MANY = tuple(f"Between {10 * n} and {10 * n + 9}" for n in range(10))  # A to J: with I


def chosen(response: str, options: tuple[str, ...] = OPTIONS) -> str | None:
    index = extract_choice(response, options)
    return None if index is None else LETTERS[index]


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("B", "B"),
        (" b\n", "B"),
        ("B.", "B"),
        ("(B)", "B"),
        ("[b]", "B"),
        ("**B**", "B"),
        ("`B`", "B"),
        ('"B"', "B"),
        ("\uff22", "B"),
        ("Option B", "B"),
        ("Answer: B", "B"),
        ("**Answer:** B", "B"),
        ("Answer: B) No", "B"),
        ("Answer: (B) No", "B"),
        ("answer: b", "B"),
        ("B. No", "B"),
        ("B) No", "B"),
        ("(B) No", "B"),
        ("**B)** No, it will not.", "B"),
        ("B: No", "B"),
        ("B - No", "B"),
        ("B\n\nThe bill has no majority.", "B"),
        ("B because the bill has no majority", "B"),
        ("The answer is B", "B"),
        ("The answer is B.", "B"),
        ("The answer is (b).", "B"),
        ("The correct answer is **B**.", "B"),
        ("The answer is B because I think so", "B"),
        ("My final answer: B", "B"),
        ("My answer would be B.", "B"),
        ("The most likely outcome is B.", "B"),
        ("The most likely outcome would be option B, given the polls.", "B"),
        ("I think C", "C"),
        ("I think C.", "C"),
        ("I would choose C", "C"),
        ("I'd go with option C.", "C"),
        ("I believe the answer is D", "D"),
        ("I am going with C", "C"),
        ("As I see it, I think it is C.", "C"),
        ("Option B is the most likely.", "B"),
        ("Option A is unlikely, so B is the most likely.", "B"),
        ("$\\boxed{B}$", "B"),
        ("So: \\boxed{\\text{B}}", "B"),
        ('{"answer": "B"}', "B"),
        ("Given all that, I weigh the polls.\n\nB", "B"),
        ("B (No)", "B"),
        ("It's B", "B"),
        ("It is B.", "B"),
        ("Probably B", "B"),
        ("Most likely: B", "B"),
        ("I predict: B.", "B"),
        ("The answer is definitely B", "B"),
        ("The answer is most likely B.", "B"),
        ("The answer isn't A, it is B.", "B"),
        ("C, since the bill has stalled", "C"),
        ("<answer>B</answer>", "B"),
        ("[[B]]", "B"),
        ("I'd bet on B over A", "B"),
        ("Between A and B, I'd go for B.", "B"),
        ("Not B. I choose C.", "C"),
        ("**C. Not before June**\n\nReasoning: A is impossible.", "C"),
        ("A long time has passed.\n**C**", "C"),
        ("A", "A"),
        ("a", "A"),
        ("A.", "A"),
        ("A. Yes", "A"),
        ("The answer is A", "A"),
        ("The answer is A.", "A"),
        ("the answer is a", "A"),
        ("The answer is A because it has passed.", "A"),
        ("I think A", "A"),
        ("I choose A.", "A"),
    ],
)
def test_a_stated_letter_is_found(response: str, letter: str) -> None:
    assert chosen(response) == letter


@pytest.mark.parametrize(
    "response",
    [
        "",
        "   \n",
        "...",
        "I cannot predict the future.",
        "I'm sorry, but I can't help with that.",
        "A recession is likely.",
        "The answer is a matter of opinion.",
        "The answer is: A recession is coming",
        "My answer: A recession.",
        "I think a recession is coming.",
        "I think A recession is coming.",
        "I can not say whether A or B.",
        "The answer is B or C.",
        "The answer is either B or C.",
        "Answer: A/B",
        "Answer: B, C",
        "The answer is not B.",
        "The answer isn't B.",
        "The answer cannot be B.",
        "The answer is neither A nor B.",
        "I do not think B",
        "I would not choose B.",
        "I think B is less likely than the others.",
        "Plan B is the best",
        "Vitamin C is good",
        "A. Yes\nB. No\nC. Not before June",
        "The answer is X.",
        "E",
        "The answer is C++.",
        "Both are possible",
        "No idea.",
        "No, I can't say.",
        "Yes or no, that is the question",
    ],
)
def test_what_is_no_choice_is_not_made_one(response: str) -> None:
    assert chosen(response) is None


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("I", "I"),
        ("(I)", "I"),
        ("I.", "I"),
        ("Answer: I", "I"),
        ("The answer is I.", "I"),
        ("I think C", "C"),
        ("I think I", "I"),
        ("I", "I"),
        ("The answer is: I think C.", "C"),
        ("I am an assistant", None),
        ("I, for one, cannot know.", None),
        ("I'd rather not say", None),
        ("I think it depends", None),
        ("I believe I can not answer", None),
        ("The answer is I do not know.", None),
        ("The answer is: I'm not sure", None),
        ("As far as I can see, none", None),
        ("J", "J"),
    ],
)
def test_the_pronoun_is_no_letter(response: str, letter: str | None) -> None:
    assert chosen(response, MANY) == letter


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("The answer is A. Wait, no: the answer is C.", "C"),
        ("B\n\nOn second thought, the answer is C", "C"),
        ("I think B. Final answer: D", "D"),
        ("Some would choose option A; I choose B.", "B"),
        ("The answer is A. No: the answer is B or C.", None),
    ],
)
def test_of_several_statements_the_last_holds(response: str, letter: str | None) -> None:
    assert chosen(response) == letter


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("<think>The answer is A. Or B?</think>C", "C"),
        ("<think>\nI think A\n</think>\n\nThe answer is C.", "C"),
        ("The answer is A, I guess.</think>\nC", "C"),
        ("<think>The answer is A. Hmm, I wonder", None),
        ("<thinking>A</thinking>", None),
    ],
)
def test_reasoning_is_not_the_answer(response: str, letter: str | None) -> None:
    assert chosen(response) == letter


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("No", "B"),
        ("no.", "B"),
        ("**Yes**", "A"),
        ("Not before June", "C"),
        ("not before june.", "C"),
        ("No, and it is annulled", "D"),
        ("The answer is No.", "B"),
        ("The answer is: Not before June", "C"),
        ("No. The bill has no majority.", "B"),
        ("Yes, because it has passed.", "A"),
        ("It has no majority, so\nNo", "B"),
        ("The answer is No. Not before June.", "B"),
    ],
)
def test_an_options_text_stands_for_its_letter(response: str, letter: str) -> None:
    assert chosen(response) == letter


YES_NO = ("Yes", "No")


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("A (30%), B (70%)", None),
        ("A - 30%, B - 70%", None),
        ("B (70%)", "B"),
        ("The least likely option is A", None),
        ("The worst choice is A", None),
        ("The second most likely outcome is A", None),
        ("I doubt that the answer is B", None),
        ("There is no doubt that the answer is B", "B"),
        ("I don't think that the answer is B.", None),
        ("I don't think it is B.", None),
        ("It is unlikely that the answer is B", None),
        ("The answer is unlikely to be B", None),
        ("Whether the answer is A is hard to say.", None),
        ("I pick B. If the answer is A, we lose.", "B"),
        ("If the answer is A, we lose. I pick B.", "B"),
        ("If I had to choose, I'd say B.", "B"),
        ("If I had to guess I would say B", "B"),
        ("I am not sure, but the answer is B", "B"),
        ("Since A is unlikely I pick B.", "B"),
        ("One is as good as the other\nAnswer: B", "B"),
        ("My answer is B; the runner-up answer is A", "B"),
        ("My first choice is B, my second choice is A", "B"),
        ("> B", "B"),
        ("## Answer\nB", "B"),
        ("It's No.", "B"),
        ("I'd go with No.", "B"),
        ("I do not think it's No.", None),
        ("It's no surprise.", None),
        ("\\boxed{\\mathrm{B}}", "B"),
        ("\\boxed{\\textbf{(B)}}", "B"),
    ],
)
def test_what_is_doubted_supposed_or_second_is_not_chosen(
    response: str, letter: str | None
) -> None:
    assert chosen(response, YES_NO) == letter


@pytest.mark.parametrize(
    ("response", "options", "letter"),
    [
        ("5", ("<5", ">5"), None),
        ("The answer is 5", ("<5", ">5"), None),
        (">5", ("<5", ">5"), "B"),
        ("> 5", ("< 5", "> 5"), "B"),
        ("The answer is <5.", ("<5", ">5"), "A"),
        ("The answer is B. Obama.", ("B. Obama", "J. McCain", "R. Paul"), "A"),
        ("B. Obama, because of the polls", ("B. Obama", "J. McCain", "R. Paul"), "A"),
        ("The answer is B.", ("B. Obama", "J. McCain", "R. Paul"), "B"),
        ("I pick Team B.", ("Team B", "Team A"), "A"),
        ("The answer is B", ("Team B", "Team A"), "B"),
    ],
)
def test_the_text_of_an_option_is_told_from_letters_and_other_texts(
    response: str, options: tuple[str, ...], letter: str | None
) -> None:
    assert chosen(response, options) == letter


def test_a_letter_is_a_letter_where_an_option_reads_like_one() -> None:
    assert chosen("A", ("B", "A")) == "A"  # it was asked for the letter


def test_options_of_the_same_text_are_told_apart_by_letters_alone() -> None:
    assert chosen("Other", ("Other", "Other")) is None
    assert chosen("B", ("Other", "Other")) == "B"


def test_a_long_response_is_read_in_no_time() -> None:
    assert chosen("I think that the answer is " * 40_000) is None
    assert chosen("(" * 200_000) is None
    assert chosen("<think>" * 20_000) is None
    assert chosen("I think the the the " * 20_000 + "\nB") == "B"
    assert chosen("answer " * 100_000 + "is B") == "B"
