import pytest

from models.options.extraction import extract_choice
from models.options.protocols import LETTERS

OPTIONS = ("Yes", "No", "Not before June", "No, and it is annulled")
YES_NO = ("Yes", "No")
MANY = tuple(f"Between {10 * n} and {10 * n + 9}" for n in range(10))  # A to J: with I


def chosen(response: str, options: tuple[str, ...] = OPTIONS) -> str | None:
    index = extract_choice(response, options)
    return None if index is None else LETTERS[index]


@pytest.mark.parametrize(
    ("options", "letter", "responses"),
    [
        (OPTIONS, "B", [
            # as others have reported of their own readers
            "I considered (A), but it is incorrect. Final answer: B.", "Answer: <B>",
            "So $\\boxed{\\langle H\\rangle}$ holds.\n\n**Answer: B**", "$$\\fbox{B}$$",
            "Answer: A\nI need to correct this.\nAnswer: B", "Answer: \\text{B}",
            "The answer is \\textbf{B}", "Answer: \\(B\\)", "选项 (B) $3.3\\mathrm{MeV}$。",
            "Antwort:\n\nAntwort: B", "Therefore the answer is not A but rather B.",
            "Not A but it's B.", "<B>B</B>",
            "B", " b\n", "B.", "(B)", "[b]", "**B**", "`B`", '"B"', "\uff22", "Option B",
            "Answer: B", "**Answer:** B", "Answer: B) No", "Answer: (B) No", "answer: b", "B. No",
            "B) No", "(B) No", "**B)** No, it will not.", "B: No", "B - No",
            "B\n\nThe bill has no majority.", "B because the bill has no majority",
            "The answer is B", "The answer is B.", "The answer is (b).",
            "The correct answer is **B**.", "The answer is B because I think so",
            "My final answer: B", "My answer would be B.", "The most likely outcome is B.",
            "The most likely outcome would be option B, given the polls.",
            "Option B is the most likely.", "Option A is unlikely, so B is the most likely.",
            "$\\boxed{B}$", "So: \\boxed{\\text{B}}", '{"answer": "B"}',
            "Given all that, I weigh the polls.\n\nB", "B (No)", "It's B", "It is B.", "Probably B",
            "Most likely: B", "I predict: B.", "The answer is definitely B",
            "The answer is most likely B.", "The answer isn't A, it is B.", "<answer>B</answer>",
            "A is unlikely, so B", "A is unlikely, so B.", "Option A is impossible, therefore (B).",
            "if I had to choose: B", "If I had to pick one, B.",
            "If I had to choose, it would be B",
            "La réponse est B", "La réponse est B.", "Die Antwort ist B", "La respuesta es (B)",
            "The answer is B\n\nHuman: Sure?\n\nThe answer is A", "B<|im_end|>\nA",
            "[[B]]", "I'd bet on B over A", "Between A and B, I'd go for B.",
            "B</s>[INST] The answer is A", "B [/INST] The answer is A",
            "B<end_of_turn>\n<start_of_turn>user\nThe answer is A",
            "The answer is B\nUser: Sure?\nThe answer is A", "B\n\n### Human: The answer is A",
            "B\n\n### Instruction:\nThe answer is A", "- B. No", "– B) No", "• B: No", "- No",
            "- A is unlikely.\n- B is the most likely.", "B, I think", "If forced to choose, B",
            "A seems unlikely; therefore B", "A is out, so B", "B is likelier than A",
            "La bonne réponse est la B", "La réponse est donc B.", "Je choisis B", "Je dirais B.",
            "Die richtige Antwort lautet B.", "Ich wähle B", "Ich denke, B", "Elijo B",
            "La respuesta correcta es la opción B", "La risposta corretta è la B",
            "Ответ: B", "Правильный ответ — B.", "Я выбираю B", "Het juiste antwoord is B.",
            "Ik kies B", "Odpowiedź: B", "答案是B", "正确答案是（B）。", "我选择B", "答えはBです",
            "정답은 B입니다.", "Sure! B", "So, B.", "Therefore, B", "Definitely B", "Must be B",
            "Almost certainly B.", "My answer is therefore B.", "B it is.", "B is the answer.",
            "B would be my pick.", "Since A is unlikely, B", "Given that A is impossible, B.",
            "A is unlikely. B.", "Because A has been ruled out, B is the answer", "Ans: B",
            "B, not A", "B rather than A", "Not A but B.", "I think B will happen",
            "* The bill stalled.\n* So B.", "A: unlikely\nB: likely\n\nFinal: B",
            "B\nConfidence: 70%", "Answer: B\nConfidence: 70%\nAlternative: C",
            " B\n\nQuestion: Will it rain?\nOutcomes:\nA. Yes\nB. No\nAnswer: A",
            " B. No\n\nThis question was asked on 2024-01-01.\n\nQuestion: X?\nAnswer: A",
            "B\n\n**Question 2:** Will it rain?\n**Answer:** A", "B\r\n\r\n## Question\r\nX?\r\nA",
            "B<|start_header_id|>user<|end_header_id|>\n\nA", "B<｜User｜>The answer is A",
            "Question: Will it pass?\nAnswer: B", "B\nAssistant: The answer is A",
            "Final decision: B", "Conclusion: B", "In conclusion, B.", "My verdict is B.",
            "Highest probability: B", "B has the highest probability.", "Chosen: B", "Leaning B",
            "My money is on B.", "It is hard to say, but B is more likely.", "Svaret är B",
            "Likely no.", "Most likely: No", "No – the polls are clear.", "Answer: No (B)",
            "Here is my analysis:\n\n**Question:** Will it pass?\n\n**Answer:** B",
        ]),
        (OPTIONS, "C", [
            "I think C", "I think C.", "I would choose C", "I'd go with option C.",
            "I am going with C", "As I see it, I think it is C.", "C, since the bill has stalled",
            "Not B. I choose C.", "**C. Not before June**\n\nReasoning: A is impossible.",
            "A long time has passed.\n**C**",
        ]),
        (OPTIONS, "D", ["I believe the answer is D"]),
        (OPTIONS, "A", [
            "A", "a", "A.", "A. Yes", "The answer is A", "The answer is A.", "the answer is a",
            "The answer is A because it has passed.", "I think A", "I choose A.",
        ]),
        (MANY, "I", ["I", "(I)", "I.", "Answer: I", "The answer is I.", "I think I"]),
        (MANY, "C", ["I think C", "The answer is: I think C."]),
        (MANY, None, [
            "I am an assistant", "I, for one, cannot know.", "I'd rather not say",
            "I think it depends", "I believe I can not answer", "The answer is I do not know.",
            "The answer is: I'm not sure", "As far as I can see, none",
        ]),
        (MANY, "J", ["J"]),
        # Answers in other languages, and what looks alike.
        (YES_NO, "B", [
            "Erantzuna B da.", "Erantzuna: B", "Erantzun zuzena B da.", "Nire ustez, B.",
            "B aukera da zuzena.", "B aukeratzen dut.", "Uste dut B dela.", "B da erantzuna.",
            "Trio la B.", "Crec que és B.", "A resposta correcta é a B.", "Jeg vælger B.",
            "Jeg tror det er B.", "Jag väljer B.", "Valitsen B.", "Svarið er B.", "Vybírám B.",
            "A válasz B.", "A helyes válasz a B.", "Aleg B.", "Я обираю B.", "Адказ: B",
            "Η σωστή απάντηση είναι η B.", "Επιλέγω B.", "Doğru cevap B'dir.",
            "Cevap B şıkkıdır.", "Yanıt: B", "Përgjigja është B.", "An freagra ná B.",
            "Yr ateb yw B.", "It-tweġiba hija B.", "ចម្លើយគឺ B", "ຄຳຕອບແມ່ນ B", "ಉತ್ತರ B",
            "ശരിയായ ഉത്തരം B ആണ്", "ਜਵਾਬ B ਹੈ", "ଉତ୍ତର B", "නිවැරදි පිළිතුර B", "जवाफ B हो",
            "گزینه B درست است", "Amsar ita ce B.", "Ìdáhùn ni B.", "መልሱ B ነው", "პასუხი არის B.",
            "Պատասխանը B է։", "Düzgün cavab B-dir.", "Javob: B", "To'g'ri javob B.",
            "Хариулт: B", "La respondo estas B.", "Responsum est B.", "Scelgo B.",
            "Penso che sia B.", "It antwurd is B.", "D'Äntwert ass B.", "Richtig ist B.",
            "Antwort B ist richtig.", "B ist die richtige Antwort.", "B est la bonne réponse.",
            "B es la respuesta correcta.", "B é a resposta certa.", "B è la risposta corretta.",
            "Правильный вариант — B", "Вариант B.",
        ]),
        (YES_NO, None, [
            "Răspunsul nu este B.", "Odgovor ni B.", "Përgjigja nuk është B.", "Nu aleg B.",
            "Non scelgo B.", "Non penso che sia B.", "Δεν επιλέγω B.", "Не избирам B.",
            "Ez dut uste B dela.", "Erantzuna ez da B.", "Erantzuna B edo A da.",
            "Erantzuna B bada", "Պատասխանը B չէ։", "Պատասխանը A կամ B է։", "መልሱ B አይደለም",
            "Cevap B değildir.", "ഉത്തരം B അല്ല", "Nicht richtig ist B.",
            "Answer: A and B.",
            "B est la bonne réponse ?", "B is the most likely?", "The trio A, B",
            "პასუხი არ არის B", "Nëse përgjigja është B, atëherë", "Ha a válasz B, akkor",
            "Om svaret är B, så", "Kama jibu ni B, basi",
        ]),
        # Of several statements the last holds.
        (OPTIONS, "C", [
            "The answer is A. Wait, no: the answer is C.",
            "B\n\nOn second thought, the answer is C",
        ]),
        (OPTIONS, "D", ["I think B. Final answer: D"]),
        (OPTIONS, "B", ["Some would choose option A; I choose B."]),
        (OPTIONS, None, [
            "Answer: A, B and C", "Answer: A, B, and (C).",
            "The answer is A. No: the answer is B or C."]),
        # Reasoning is not the answer.
        (OPTIONS, "C", [
            "<think>The answer is A. Or B?</think>C",
            "<think>\nI think A\n</think>\n\nThe answer is C.",
            "The answer is A, I guess.</think>\nC",
        ]),
        (OPTIONS, None, ["<think>The answer is A. Hmm, I wonder", "<thinking>A</thinking>"]),
        # An options text stands for its letter.
        (OPTIONS, "B", [
            "No", "no.", "The answer is No.", "No. The bill has no majority.",
            "It has no majority, so\nNo", "The answer is No. Not before June.",
        ]),
        (OPTIONS, "A", ["**Yes**", "Yes, because it has passed."]),
        (OPTIONS, "C", ["Not before June", "not before june.", "The answer is: Not before June"]),
        (OPTIONS, "D", ["No, and it is annulled"]),
        # Doubted or second options are not chosen.
        (YES_NO, None, [
            "A (30%), B (70%)", "A - 30%, B - 70%", "The least likely option is A",
            "The worst choice is A", "The second most likely outcome is A",
            "I doubt that the answer is B", "I don't think that the answer is B.",
            "I don't think it is B.", "It is unlikely that the answer is B",
            "The answer is unlikely to be B", "Whether the answer is A is hard to say.",
            "I do not think it's No.", "It's no surprise.", "Yes. No.", "Yes\nNo", "A. Yes B. No",
            "Yes: 0.3, No: 0.7", "Yes - 30 %, No - 70 %", "Not leaning B", "Probably not",
            "B has not the highest probability", "The conclusion is not B.", "My money isn't on B.",
            "B has the highest probability of failing.", "No (A)", "I was leaning B",
        ]),
        (YES_NO, "B", [
            "B (70%)", "There is no doubt that the answer is B",
            "I pick B. If the answer is A, we lose.", "If the answer is A, we lose. I pick B.",
            "If I had to choose, I'd say B.", "If I had to guess I would say B",
            "I am not sure, but the answer is B", "Since A is unlikely I pick B.",
            "One is as good as the other\nAnswer: B", "My answer is B; the runner-up answer is A",
            "My first choice is B, my second choice is A", "> B", "## Answer\nB", "It's No.",
            "I'd go with No.", "\\boxed{\\mathrm{B}}", "\\boxed{\\textbf{(B)}}",
        ]),
    ],
)  # fmt: skip
def test_the_letter_that_is_chosen(
    options: tuple[str, ...], letter: str | None, responses: list[str]
) -> None:
    for response in responses:
        assert chosen(response, options) == letter, response


@pytest.mark.parametrize(
    "response",
    [
        "", "   \n", "...", "I cannot predict the future.",
        "I'm sorry, but I can't help with that.", "A recession is likely.",
        "The answer is a matter of opinion.", "The answer is: A recession is coming",
        "My answer: A recession.", "I think a recession is coming.",
        "I think A recession is coming.", "I can not say whether A or B.", "The answer is B or C.",
        "The answer is either B or C.", "Answer: A/B", "Answer: B, C", "The answer is not B.",
        "The answer isn't B.", "The answer cannot be B.", "The answer is neither A nor B.",
        "I do not think B", "I would not choose B.", "I think B is less likely than the others.",
        "Plan B is the best", "Vitamin C is good", "A. Yes\nB. No\nC. Not before June",
        "The answer is X.", "E", "The answer is C++.", "Both are possible", "No idea.",
        "No, I can't say.", "Yes or no, that is the question", "- A\n- B", "- A. Yes\n- B. No",
        "Ich denke, C ist falsch", "La réponse n'est pas B", "No creo que es B",
        "A is not impossible; so B", "A isn't unlikely, so B", "If forced to choose, B or C",
        "La risposta non è B", "La respuesta no es B", "Het antwoord is niet B", "Ответ: A или B",
        "Ответ не B", "答案不是B", "答案是A或B", "如果答案是B", "答案是B吗？",
        "答えはBではありません", "정답은 B가 아닙니다",
        "Si la réponse est B, tant pis", "Wenn die Antwort B ist", "La réponse est A ou B", "B?",
        "The answer is B? Hmm.", "B: unlikely", "B) Unlikely.", "B+", "D. J. Trump", "A. B.",
        "The answer could be B, but it could also be C.", "The answer is B, or maybe C.",
        "The answer is B (or C)", "The answer is B - C", "The answer is b or c", "B (or C)",
        "The answer is B only if it rains", "I think B will not happen", "I used to think B.",
        "I was going to say B", "Some say the answer is B.", "The crowd's answer is B", "Not B",
        "It is unlikely that B is the answer.", "Not my choice: B", "Definitely not B", "So B?",
        "I cannot say.\n\nQuestion: Will it rain?\nAnswer: A", "Answer:\n\nQuestion: X?\nAnswer: A",
    ],
)  # fmt: skip
def test_what_is_no_choice_is_not_made_one(response: str) -> None:
    assert chosen(response) is None


@pytest.mark.parametrize(
    "response",
    [
        "I'd pick B... no, scratch that, C.", "The answer is B. Wait, no — C.",
        "The answer is B. Actually, C.", "I'd say A, sorry, C.", "B. No wait, C.",
        "I choose A… hmm, no, make that C.", "Answer: B\nCorrection: C",
        "The answer is B, or rather C.", "My answer is A. On second thought, C.",
        "I'd go with B; I mean C.", "The answer is B. No, it's C, because it rained.",
        "I mean C.", "I almost wrote A. Sorry, C.",
        "Je dirais B... non, plutôt C.", "La réponse est B. Pardon, C.",
        "La réponse est B, non, je me corrige : C.",
        "Ich wähle B... nein, doch C.", "Die Antwort ist B. Korrektur: C.",
        "Ich nehme B – ach nein, lieber C.",
        "Elijo B... no, mejor C.", "La respuesta es B. Perdón, C.",
        "La respuesta es A; corrijo: C.", "Scelgo B... no, anzi, C.", "La risposta è B. Scusa, C.",
        "Escolho B... não, melhor C.", "A resposta é B, aliás, C.",
        "Ответ: B. Нет, точнее C.", "Я выбираю B... нет, C.",
        "答案是B。不对，选C。", "答案是B，不，是C。",
        "答えはB、いや、Cです。", "정답은 B, 아니, C입니다.",
    ],
)  # fmt: skip
def test_the_last_of_corrected_answers_counts(response: str) -> None:
    assert chosen(response, ("w", "x", "y", "z")) == "C"


@pytest.mark.parametrize(
    "response",
    [
        "The answer is B. Actually, A, C and D are all impossible.",
        "The answer is B. No, A recession is not likely.", "The answer is B. Wait, I think so.",
        "The answer is B. No, C is wrong.", "The answer is B. Sorry, A and C are out.",
        "No, A, C and D are not possible. The answer is B.", "B. No, C is unlikely",
        "The answer is B. Oh, C would be fine in winter.", "The answer is B. Rather, C?",
        "The answer is B. Actually, C (30%) is close.",
        "The answer is B. Actually, C, though close, is wrong.",
        "The answer is B. But wait, C also fits.", "The answer is B (earlier I said no, C).",
        "The answer is B. There is no C.",
    ],
)  # fmt: skip
def test_words_of_a_correction_without_another_answer_correct_nothing(response: str) -> None:
    assert chosen(response, ("w", "x", "y", "z")) == "B"


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
        ("three", ("1", "2", "3"), "C"),
        ("The answer is three.", ("1", "2", "3"), "C"),
        ("3", ("One", "Two", "Three"), "C"),
        ("Two or more.", ("0", "1", "2 or more"), "C"),
        ("thirty", ("1", "2", "3"), None),
        ("1. The bill has stalled.", ("0", "1", "2"), None),
        ("B. Unlikely", ("Likely", "Unlikely"), "B"),
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
    assert chosen(" \nQuestion:" * 100_000) is None
    assert chosen("no, wait, actually, " * 40_000) is None
    assert chosen("B" + "\ufdfa" * 100_000) is None  # each is 18 letters in the form NFKC


@pytest.mark.parametrize(
    "response",
    [
        "If forced: B", "if forced: B", "If forced to choose, B", "A or B, but more likely B",
        "A or B, but more likely B.", "Either A or B, but most likely B", "الإجابة هي B",
        "الإجابة الصحيحة هي (B).", "الجواب: B", "الجواب هو B", "أختار B",
        "أعتقد أن الإجابة هي B.", "الإجابة: **B**", "الخيار B", "उत्तर: B", "सही उत्तर B है।",
        "उत्तर B है", "मेरा जवाब B है।", "सही उत्तर है: B", "विकल्प B सही है", "मैं B चुनता हूँ।",
        "Đáp án là B", "Đáp án: B.", "Đáp án đúng là B.", "Câu trả lời là B",
        "Câu trả lời đúng là (B).", "Tôi chọn B", "Tôi chọn đáp án B.", "Tôi nghĩ đáp án là B",
        "Jawabannya adalah B", "Jawaban: B", "Jawaban yang benar adalah B.", "Saya memilih B",
        "Saya pilih opsi B", "Jawaban saya B.", "A resposta é B",
        "A resposta correta é a letra B.", "Resposta: B", "Eu escolho B", "Escolho a opção B",
        "A alternativa correta é B", "Acho que é B", "Acho que a resposta é B.",
        "A opção mais provável é B", "Minha resposta: B", "Cevap: B", "Відповідь: B",
        "Odpověď je B.", "Răspunsul este B", "Η απάντηση είναι B", "התשובה היא B", "คำตอบคือ B",
        "پاسخ: B",
        "If I were forced to choose: B", "When pressed, B", "Could be A or B; more likely B.",
        "A or B — most likely B", "A or B, but probably B", "Se forçado: B",
        "Si je devais choisir : B", "Si tuviera que elegir: B", "Wenn ich wählen müsste: B",
        "Kemungkinan besar B", "Menurut saya, B", "Pilihan saya B", "B lebih mungkin",
        "B é a mais provável", "B có khả năng cao nhất", "Скорее всего B", "الخيار B هو الأرجح",
        "B هو الأكثر احتمالا", "विकल्प B सबसे संभावित है", "Oikea vastaus on B",
        "Det rigtige svar er B",
        "Riktig svar er B.", "Правилният отговор е B", "Тачан одговор је B", "Točan odgovor je B",
        "Pravilen odgovor je B", "La resposta correcta és la B", "Jawapan yang betul ialah B",
        "Ang tamang sagot ay B", "Jibu sahihi ni B", "சரியான விடை B", "సరైన సమాధానం B",
        "बरोबर उत्तर B आहे",
        "સાચો જવાબ B છે", "Teisingas atsakymas: B", "Pareizā atbilde ir B", "Õige vastus on B",
        "Дұрыс жауап: B", "Düzgün cavab: B", "Rätt svar är B", "Správna odpoveď je B",
        "درست جواب B ہے",
    ],
)  # fmt: skip
def test_an_answer_is_read_in_more_languages(response: str) -> None:
    assert chosen(response) == "B"


@pytest.mark.parametrize(
    "response",
    [
        "الإجابة ليست B", "إذا كانت الإجابة هي B", "لا أختار B", "अगर उत्तर B है",
        "उत्तर B नहीं है", "Đáp án không phải là B", "Nếu đáp án là B", "Tôi không chọn B",
        "Jawabannya bukan B", "Jika jawabannya adalah B", "A resposta não é B",
        "Se a resposta é B", "Não escolho B", "A resposta é A ou B", "Đáp án là A hoặc B",
        "Jawabannya adalah A atau B", "الإجابة هي A أو B", "A or B, but more likely neither",
        "Kemungkinan besar bukan B", "Se forçado: A ou B", "B não é a mais provável",
        "A or B, but probably neither", "When pressed, A or B", "B tidak lebih mungkin",
        "उत्तर A या B है", "B không phải là đáp án", "A resposta é A pergunta",
        "Svaret er ikke B", "Hvis svaret er B", "Svaret er A eller B", "Vastaus ei ole B",
        "Jos vastaus on B", "Vastaus on A tai B", "Отговорът не е B", "Ако отговорът е B",
        "Odgovor nije B", "Odgovor je A ili B", "Kung ang sagot ay B", "Ang sagot ay hindi B",
        "Jibu si B", "Atsakymas nėra B", "Jei atsakymas yra B", "Atbilde nav B", "Ja atbilde ir B",
        "Kui vastus on B", "La resposta no és B", "उत्तर B नाही", "જવાબ B નથી",
        "My answer depends on B",
    ],
)  # fmt: skip
def test_what_is_denied_or_doubted_in_other_languages_is_no_answer(response: str) -> None:
    assert chosen(response) is None


@pytest.mark.parametrize(
    ("opens", "closes"),
    [("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("<seed:think>", "</seed:think>")],
)
def test_thoughts_of_every_mark_are_no_answer(opens: str, closes: str) -> None:
    assert chosen(f"{opens}The answer is A.{closes}B") == "B"
    assert chosen(f"{opens}The answer is A.") is None
