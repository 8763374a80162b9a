"""Answers as (strict reading, lenient reading, texts of models); None: no answer."""

Read = tuple[int, ...] | None

BIG = 10**18 - 1

NUMBERS: list[tuple[int | None, int | None, list[str]]] = [
    (7, 7, [
        "The answer is 7", "The answer is 7.", "The answer is: 7", "the answer is 7\n",
        "THE ANSWER IS 7!", "Answer: 7", "answer:7", "Answer = 7", "\x41ns: 7", "\\boxed{min = 7}",
        "Answer -> 7", "Answer\n7", "## Final Answer\n\n7\n", "Final answer 7",
        "My final answer would be 7.", "The correct answer to this puzzle is therefore 7.",
        "So the answer must be 7", "The answer equals 7", "The answer is the number 7.",
        "The answer is = 7", "The answer is k = 7.", "The answer is the minimum, 7.",
        "The answer is the 2nd largest number, 7.", "The answer is that 7 occurs most often.",
        "The final result is 7", "<answer>7</answer>", "The answer is <7>", '{"answer": 7}',
        "{'answer': '7'}", 'The answer is "7".', "The answer is [7]", "The answer is (7).",
        "the answer\nis 7", "The answer is ANSWER = 7", "The answer is <ANSWER>7</ANSWER>",
        "The answer is seven (7).", "The answer is 7. Another possible answer is 8."]),
    (3, 3, ["The answer is three (3)."]),
    (21, 21, ["The answer is twenty-one (21)."]),
    (107, 107, ["The answer is one hundred and seven (107)."]),
    (7, 7, [
        "The answer is seven.", "Answer: Seven", "seven", "7", "7.", " **7** ", "$7$",
        "The answer is seven\nbecause"]),
    (42, 42, ["The answer is forty-two.", "forty two"]),
    (None, None, [
        "The answer is seven hundred.", "The answer is seven of nine.", "seven samurai",
        "twenty-"]),
    (7, 7, [
        "The answer is 7.\n\nHuman: and now?\n\nThe answer is 8.",
        "The answer is 7<|im_end|>\n<|im_start|>user\nThe answer is 9.",
        "The answer is 7\n\nQuestion: 4 + 5?\nThe answer is 9", "7\n\nProblem 2: 4 + 5?\nAnswer: 9",
        "The answer is 7\n\nHere is a puzzle, \"Sum\".\n\nThe answer is 9",
        "Let me see.\n\n**Question:** 3 + 4?\n\nThe answer is 7",
        "The answer is 7</s>[INST] The answer is 9", "The answer is 7\nUser: The answer is 9",
        "The answer is 7<end_of_turn>\n<start_of_turn>user\nThe answer is 9."]),
    (None, 7, [
        "The answer for k=3 is 7", "The answer is the 3rd number in the sorted list, which is 7.",
        "The answer is approximately 7"]),
    (7, 7, [
        "The answer is 7 - the smallest", "Answer: 7 (I checked 3 times)",
        "The answer is 7. I checked 3 times.", "The answer is 7\n\nI checked 3 times.",
        "The answer is 7, since 3 < 7.", "The answer is 7 because 3 + 4 is 7.",
        "The answer is 7, which is at index 3.", "The answer is 7, not 8.",
        "There are 3 numbers. The answer is 7.Next I check.", "The answer is 3 + 4 = 7",
        "The answer is min(9, 7) = 7.", "The answer is 7 = 3 + 4"]),
    (None, None, ["The answer is 7/1", "The answer is \u00bd"]),
    (None, 34, ["12\n34"]),
    (12, 12, ["The answer is 12\n34"]),
    (7, 7, [
        "The answer is 3. Wait, no. The answer is 7.",
        "The answer is 7. The answer is not obvious.",
        "The answer is 7. Is that right? The answer is certainly found.", "Answer: the answer is 7",
        "The answer is 3, but \\boxed{7}", "\\boxed{3} is wrong; the answer is 7",
        "The answer cannot be 3. The answer is 7."]),
    (None, None, [
        "The answer is 7. The answer is 7.9.", "The answer is 7 or 8", "The answer is 7 and 8",
        "The answer is 7, 8", "The answer is 7 8", "The answer is 7-8", "The answer is 7 to 8",
        "The answer is [7, 8]", "The answer is 7 + 8", "\\boxed{7} or \\boxed{8}"]),
    (7, 7, [
        "\\boxed{7}", "\\boxed{ 7 }", "$\\boxed{7}$.", "$$\\boxed{\\text{7}}$$",
        "\\boxed{\\mathbf{{7}}}", "\\boxed{\\text{The answer is }7}", "\\boxed{x = 7}", "\\fbox{7}",
        "\\[ \\boxed{7} \\]", "The answer is $7$.", "The answer is \\(7\\).",
        "The answer is $\\boxed{7}$. I hope it is correct.", "The answer is \\textbf{7}"]),
    (1234, 1234, ["\\boxed{1{,}234}"]),
    (None, None, ["\\boxed{12", "The answer is $3 \\times 4$", "The answer is $2^3$"]),
    (None, 2, ["The answer is $\\frac{7}{2}$"]),
    (7, 7, [
        "**Answer:** 7", "**Answer: 7**", "The answer is **7**.", "The answer is *7*",
        "The answer is `7`", "The answer is:\n\n```\n7\n```\n", "The answer is:\n```python\n7\n```",
        "Answer:\n- 7", "Answer:\n\n* 7", "> The answer is 7", "### Answer: <b>7</b>"]),
    (-5, -5, ["The answer is -5", "The answer is \u22125."]),
    (5, 5, ["The answer is +5"]),
    (-5, -5, ["-5"]),
    (None, 5, ["So it is 9-5"]),
    (1234, 1234, [
        "The answer is 1,234", "The answer is 1,234.", "The answer is 1 234",
        "The answer is 1\u00a0234", "The answer is 1'234", "The answer is 1_234",
        "The answer is $1{,}234$", "The answer is $1\\,234$"]),
    (1234567, 1234567, ["The answer is 1\u202f234\u202f567", "The answer is 1,234,567"]),
    (None, None, [
        "The answer is 1,23", "The answer is 12,34,567", "The answer is 1,234.50",
        "The answer is 0,123", "The answer is 7.9", "7.9", "The answer is 0.7", "The answer is 7e3",
        "The answer is 50%", "The answer is 7 million", "The answer is 7th",
        f"The answer is {BIG + 1}", "The answer is " + "9" * 6000]),
    (1234, 1234, ["1,234"]),
    (7, 7, ["The answer is 7.0", "The answer is 7.00.", "The answer is 007"]),
    (BIG, BIG, [f"The answer is {BIG}"]),
    (7, 7, [
        "The answer is \uff17", "The answer is \u0667", "The answer\u2009is\u20037\u200b",
        "\uff21nswer\uff1a \uff17"]),
    (None, None, ["The answer is 7\u00b2"]),
    (None, None, [
        "", "   \n", "I cannot tell.", "The answer is not obvious", "The answer is <ANSWER>",
        "The answer is"]),
    (None, 7, ["It is 7", "The answer is not 3; the 7 is smaller"]),
    (None, 12, ["The sum of 3 and 4 is 7, and then we compare it with 12"]),
    (7, 7, [
        "<think>The answer is 3</think>The answer is 7", "The answer is 3</think>\nThe answer is 7",
    ]),
    (None, None, [
        "<think>The answer is 3", "[THINK]The answer is 3", "◁think▷The answer is 3",
        "<seed:think>The answer is 3", "<|START_THINKING|>The answer is 3"]),
    (7, 7, [
        "[THINK]The answer is 3[/THINK]The answer is 7",
        "analysisThe answer is 3.assistantfinalThe answer is 7",
        "<|channel|>analysis<|message|>The answer is 3<|end|><|start|>assistant<|channel|>final"
        "<|message|>The answer is 7<|return|>"]),
]  # fmt: skip
LISTS: list[tuple[Read, Read, list[str]]] = [
    ((1, 2, 3), (1, 2, 3), [
        "The answer is [1, 2, 3]", "The answer is [1, 2, 3].", "The answer is: [1,2,3]",
        "The answer is [1 2 3]", "The answer is [1, 2, 3]. Another valid answer is [4, 5, 6].",
        "Answer: (1, 2, 3)", "Answer: {1, 2, 3}", "Answer: <1, 2, 3>",
        "Answer: \u27e81, 2, 3\u27e9", "Answer: \u30101\u30012\u30013\u3011", "Answer: 1, 2, 3",
        "Answer: 1, 2 and 3.", "Answer: 1, 2, and 3", "Answer: 1 2 3", "Answer: 1; 2; 3",
        "The answer is the subset {1, 2, 3}, with sum 6.", "The answer is [ 1 ,2 , 3 , ]",
        "The answer is [\n  1,\n  2,\n  3\n]", "The answer is [[1, 2, 3]]",
        "The answer is ([1, 2, 3])"]),
    ((1, 2, 3), (1, 2, 3), [
        "[1 2 3]", "[1, 2, 3]", "1, 2, 3", "**[1, 2, 3]**.", "- 1\n- 2\n- 3", "* 1\n* 2\n* 3",
        "The answer is:\n- 1\n- 2\n- 3", "Answer:\n\n* 1\n* 2\n* 3\n\nThe sum is 6."]),
    ((-1, 2), (-1, 2), ["Answer:\n- -1\n- 2"]),
    (None, (1, 2, 3), ["So: [1, 2, 3]", "[1, 2, 3], I think"]),
    ((3, 4), (3, 4), [
        "Another way: the answer is [1, 2]. The answer is [3, 4].",
        "The two numbers are found: the answer is 3 and 4, which sum to 7.",
        "The answer is the pair (3, 4).", "The answer is 3, 4 (sum 7)"]),
    ((1, 2), (1, 2), [
        'The answer is ["1", "2"]', "The answer is ['1', '2']", "The answer is [1.0, 2.0]"]),
    (None, None, ["The answer is [1.5, 2.0]"]),
    ((-1, -2, 3), (-1, -2, 3), ["The answer is [-1, \u22122, +3]"]),
    ((), (), ["The answer is []"]),
    ((5,), (5,), ["The answer is [5]", "The answer is 5"]),
    ((0, 2, 1, 0), (0, 2, 1, 0), [
        "The answer is 0 -> 2 -> 1 -> 0", "The answer is 0 \u2192 2 \u2192 1 \u2192 0",
        "The answer is $0 \\to 2 \\to 1 \\to 0$", "The answer is [0 -> 2 -> 1 -> 0]",
        "The answer is 0-2-1-0", "The answer is: 0 - 2 - 1 - 0",
        "The answer is tour=[0, 2, 1, 0] with length 80",
        "The shortest tour is found. Final answer: 0, 2, 1, 0"]),
    ((1, 2, 3), (1, 2, 3), [
        "\\boxed{[1, 2, 3]}", "\\boxed{1, 2, 3}", "$\\boxed{\\left[1, 2, 3\\right]}$",
        "\\boxed{\\{1, 2, 3\\}}", "\\boxed{\\begin{bmatrix} 1 & 2 & 3 \\end{bmatrix}}",
        "The answer is $[1,\\ 2,\\ 3]$", "The answer is **[1, 2, 3]**.",
        "The answer is `[1, 2, 3]`", "The answer is:\n\n```json\n[1, 2, 3]\n```",
        '{"answer": [1, 2, 3]}', "The answer is l = [1, 2, 3]"]),
    ((1, 2), (1, 2), [
        "\\boxed{\\left\\{1, 2\\right\\}}", "\\boxed{\\text{[1, 2]}}",
        "The answer is [**1**, **2**]"]),
    ((3, 4), (3, 4), ["\\boxed{3} and \\boxed{4}", "$\\boxed{3}$, $\\boxed{4}$"]),
    ((1, 3), (1, 3), ["The answer is sorted([3, 1]) = [1, 3]", "The answer is [3, 1] -> [1, 3]"]),
    ((1, 234), (1, 234), ["The answer is [1,234]"]),
    ((1000, 2000), (1000, 2000), ["The answer is [1,000,2,000]"]),
    ((1045,), (1045,), ["The answer is [1,045]"]),
    ((1234, 5678), (1234, 5678), [
        "The answer is [1234,5678]", "The answer is [1,234, 5,678]",
        "The answer is [1{,}234, 5{,}678]", "The answer is [1 234, 5 678]",
        "The answer is [1,234; 5,678]", "The answer is 1,234 and 5,678."]),
    ((1, 234, 567), (1, 234, 567), ["The answer is [1,234,567]", "The answer is [1 234 567]"]),
    ((1234, 7), (1234, 7), ["The answer is [1,234, 7]"]),
    ((1234, 567, 8), (1234, 567, 8), ["The answer is [1234,567, 8]"]),
    ((3, 4), (3, 4), ["The answer is $(a, b)$ = (3, 4)", "The answer is 3, 4, where 3 + 4 = 7"]),
    (None, None, [
        "The answer is:\n3\n4", "The answer is:\n1. 3\n2. 4", "The answer is 3 - 4",
        "The answer is [1, 2", "The answer is [1, 2)", "The answer is [1, 2, ...]",
        "The answer is 1, 2, ..., 9", "The answer is [1, 2] or [2, 1]",
        "The answer is [[1, 2], [3, 4]]", "The answer is [one, two]", "The answer is 3 + 4 = 7",
        "The answer is [1, 2]. No: the answer is [1, x]", "Nothing here, not even (1)"]),
    (None, (1, 2, 3), ["The list is [1, 2, 3]. The answer is not clear (see 2)."]),
    (None, (3, 4), ["We pick 3, 4 and are done"]),
    ((2, 3), (2, 3), [
        "The answer is not [1, 2]. The answer is [2, 3].",
        "The answer is [2, 3] (the answer is sorted)"]),
    # Later remarks about the answer do not withdraw it.
    ((1, 2), (1, 2), [
        "The answer is [1, 2].\nThe answer is valid because 1 + 2 = 3.",
        "The answer is [1, 2].\nSum of the answer: 3"]),
    ((0, 1, 2, 0), (0, 1, 2, 0), ["The answer is [0, 1, 2, 0].\nThe final tour length is 25."]),
    ((0, 2, 0), (0, 2, 0), ["The answer is [0, 2, 0].\nTotal for the final tour: 3 + 4 = 7"]),
]  # fmt: skip
