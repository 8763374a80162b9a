r"""Find the chosen option in a response to a question that asked for the letter of one option.

A letter counts only if it is stated as the answer. So the words "A" and "I" in "A recession" and "I
think" do not count. The first of these rules that finds an option decides:

1. the whole response is a letter, or an option's text ("(B)", "**b**", "Option B.", "No");
2. the last statement of an answer: "the answer is B", "I think C", "\boxed{D}", "B is the most
   likely", "So B", or a last line or sentence with only a letter; also in other languages. A
   correction counts ("B... no, scratch that, C");
3. the letter at the beginning, as in a list: "B. No", "B) because …", unless several lines begin
   with letters (a repeated list of options);
4. an option's text that is stated as the answer ("the answer is No"), at the beginning
   ("No. It will …") or as the last line.

A statement of several letters ("B or C", "A/B") is no answer, and it cancels earlier statements.
Statements that are doubted, conditional, asked, or about another rank are ignored ("if the answer
is A", "B?", "the runner-up answer is A"). So are those of others ("some say the answer is A"). Rule
3 finds no answer in a first line with numbers for several letters ("A (30%), B (70%)"). An option's
text that starts with a letter ("B. Obama") has priority over the option of that letter. Number
words equal digits. Reasoning is ignored (``core.responses`` has its marks), and so are a next turn
and a next question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from core.responses import answering_part, before_next_question
from models.options.corrections import CORRECTS, CORRECTS_IN_EAST_ASIAN
from models.options.protocols import LETTERS

_MOST_CHARS = 2_000  # maximum number of characters read at each end of a response
VERSION = 13  # increase if a change here finds other choices in the same responses

_TAG = re.compile(r"</?[a-zA-Z]\w*>")
_LETTER = re.compile(r"<([A-Z])>(?![^<\n]{0,200}</\1>)")  # "<C>" is no tag if nothing closes it
_FONT = re.compile(r"\\(?:text|math)[a-z]{0,9}\s*\{([^{}\n]{0,200})\}")
_BOXED = re.compile(r"\\f?box(?:ed)?\{\s*(?:\\(?:text|math)[a-z]*\s*\{)*([^{}]*)\}+")
# Options may begin with signs ("> 5", "#2"), so remove only Markdown marks with a space behind.
_MARKUP = re.compile(
    r"^(?:\s*>+(?:\s+(?!\d)|\Z))+|^\s*#+\s+|^\s*[-–•]\s+(?=\D)|[*_`$\u200b\ufeff]+", re.MULTILINE
)
_QUOTES = str.maketrans("“”„‘’", '"""\'\'')

_OTHER_NOUNS = (  # "answer" in other languages
    "réponse|antwort|respuesta|resposta|risposta|antwoord|svar(?:et)?|odpowiedź|cevap|ответ|đáp án"
    "|选项|選項"
    "|答案|答え|正解|回答|정답|답|câu trả lời|jawaban(?:nya)?|відповідь|odpověď|odpoveď|răspunsul"
    "|válasz|vastaus|απάντηση|cevabım|отговор(?:ът)?|одговор|odgovor|jawapan(?:nya)?|sagot|jibu"
    "|atsakymas|atbilde|vastus|жауап|cavab|erantzun(?:a|ak)?|svarið|përgjigj[ae]|freagra|ateb"
    "|tweġiba|amsar?|ìdáhùn|respondo|responsum|antwurd|äntwert|yanıt(?:ım)?|адказ|javob|хариулт|вариант"
)
_NAMED = (
    r"(?:options?|outcomes?|choices?|letters?|ans(?:wers?)?|predictions?|opción|opção|opzione"
    r"|letra|lettre|alternativa|buchstabe|pilihan|opsi|huruf|phương án|lựa chọn"
    rf"|{_OTHER_NOUNS})"
)
_WHY = r"(?:because|since|given|due|based|which|as the|with|i (?:think|guess|believe|suppose))\b"
# Nouns for an answer. The stated option follows nearby on the same line.
_ANSWER = (
    rf"\b(?:{_NAMED}|pick|guess|forecast|response|selection|vote|bet|decision|conclusion|verdict)\b"
)
_IS = (
    r"(?:\b(?:is|are|be|was|remains|est|ist|lautet|es|é(?:\sa(?=\s\(?[A-Z]\b))?|è|är|это|là|adalah"
    r"|ialah|je|este|είναι(?:\sη)?|er|е|је|és|ay|yra|ir|është|yw|hija|ita\sce|estas|ass"
    # A word that means "is" after this noun, and "is not" or something else in other languages.
    r"|(?<=\bvastaus\s)on|(?<=\bvastus\s)on|(?<=\bjibu\s)ni|(?<=\bsahihi\s)ni|(?<=\bìdáhùn\s)ni"
    r"|(?<=\bfreagra\s)ná|(?<=\bválasz\s)az?(?=\s))\b|(?<=\bválasz)(?=\s\(?[B-Z]\b)"
    r"(?:\s*:)?|:|=|->|→|\s[—–]\s)"
)
_NOT = (
    r"(?:not|never|cannot|neither|nor|hardly|nicht|niet|non|pas|não|не|không|bukan(?:lah)?|není|nem"
    r"|δεν|nuk|no(?=\s(?:es|é))|nu(?=\s(?:este|e)\b))\b"
    r"|\w+n't\b"
)
_UNLIKELY = r"(?:unlikely|improbable|impossible|wrong|incorrect|false|fals\w+|fausse|mauvaise)"
_SAYS = (
    rf"\b(?:i|i'd|we|i'll|i'm|let's)\s(?:(?!{_NOT}|doubt|used|was|had|might|could)\w+\s){{0,3}}?"
    r"(?:think|choose|choosing|pick|picking|select|selecting|say|predict|predicting|believe|guess"
    r"|guessing|bet|lean|leaning|vote|answer|go|going|forecast|opt)\b"
    r"(?:\s(?:on|for|to|towards?|that|with|it|is|it's|will|be|the|most|likely|answer)\b)*:?"
    r"|\b(?:it|that)(?:'s|\s(?:is|will\sbe|would\sbe))"
    r"|\b(?:if|when)\s(?:forced(?:\sto)?|pressed|pushed)(?:,|:|\s->)"
    r"|(?:\b(?:but|though|yet)|[;,]|\s[—–])\s(?:(?:it's|it\sis|is)\s)?"
    r"(?:(?:more|most)\s(?:likely|probabl[ey])|probably)"
    r"|\bif\s(?:(?:i|we)\s(?:had\sto|must|have\sto|were\sforced\sto|am\sforced\sto)|forced\sto)"
    r"\s(?:choose|pick|guess|bet|decide|answer)"
    r"(?:\s(?:one|an?\s\w+|between\sthem))?(?:\s?[:,]|\s?->)(?:\sit\swould\sbe)?"
    r"|\bse\s(?:(?:for|fosse)\s)?forçad[oa](?:\sa\sescolher)?\s?[:,]|\bprovavelmente"
    r"|\bsi\s(?:je\sdevais|on\sme\sforçait\sà|tuviera\sque)\s(?:choisir|elegir)\s?[:,]"
    r"|\bwenn\sich\swählen\smüsste\s?[:,]|\bскорее\sвсего"
    r"|\bnếu\s(?:buộc\s)?phải\schọn\s?[:,]|\bcó\slẽ\slà|\btheo\stôi\s?[:,]"
    r"|\b(?:kemungkinan\sbesar|menurut\s(?:saya|pendapat\ssaya)\s?[:,]|pilihan\ssaya)"
    r"|\b(?:jika|kalau)\s(?:terpaksa|harus\smemilih|dipaksa(?:\smemilih)?)\s?[:,]"
    r"|\bmy\smoney\s(?:is\s)?on|(?<!was\s)\bleaning(?:\stowards?)?"
    r"|(?:\A|(?<=\n)|(?<=[.!]\s))trio\b|(?<!nicht\s)\brichtig ist\b"
    r"|\b(?:result|chosen|highest\sprobability)\s?:"
    r"|(?<!no\s)(?<!nu\s)(?<!ne\s)(?<!не\s)(?<!non\s)(?<!δεν\s)\b(?:aleg|vybírám|volím|vyberám"
    r"|biram|izberem|избирам|бирам|обираю|επιλέγω|scelgo|scelgerei|valitsen|(?:penso|credo)\sche\ssia"
    r"|crec\sque\sés)\b|\bje[gi]\s(?:vælger|velger|tror\s(?:at\s)?det er)\b"
    r"|\bjag\s(?:väljer|tror\s(?:att\s)?det\sär)\b|\bnire\sustez\s?[:,]?|(?<!ez\s)\buste\sdut\b"
    r"|\bje\s(?:choisis|dirais|penche\spour|pense\sque\sc'est)|\bik\skies|\bя\sвыбираю"
    r"|(?<!no\s)\b(?:elijo|escojo|creo\sque\ses)|(?<!nie\s)\bwybieram"
    r"|(?<!não\s)\b(?:escolho|eu\sescolheria|escolheria|acho\sque\sé|acredito\sque\sé|aposto\sem)"
    r"|\btôi\s(?:sẽ\s|xin\s)?(?:chọn|nghĩ\slà|đoán(?:\slà)?)"
    r"|\bjawaban\ssaya\b|\bsaya\s(?:akan\s)?(?:memilih|pilih|menjawab)"
    r"|\bich\s(?:wähle|nehme|tippe\sauf|denke,?|glaube,?|würde\ssagen:?)"
)
_CALLED = (
    rf"(?:{_ANSWER}(?:(?!\b(?:{_NOT}|{_UNLIKELY}|least|moins|menos|meno|could|might|may\s)\b)[^.\n])"
    rf"{{0,40}}?{_IS}"
    rf"|{_ANSWER}\"?\s(?=[(\[]))"
)
_SURELY = (
    r"(?:(?:most|very|almost)?\s?"
    r"(?:probably|likely|definitely|clearly|certainly|still|indeed|therefore|thus|hence)\s)?"
)
_BEST = (
    r"(?:it\sis(?=[.!]?(?:\n|\Z))|(?:is|seems|looks|appears|would\sbe)\s(?:to\sbe\s)?"
    r"(?:my\b|the\s(?:answer|one)(?=[.,!\n]|\Z)|the\s(?:most\s(?:likely|probable|plausible)|likeliest|best|correct"
    r"|right)|(?:most|more)\s(?:likely|probable|plausible)|likeliest|likelier|likely|correct|right"
    r"|best)"
    r"|has\sthe\s(?:highest|greatest|largest|higher)\s(?:probability|chances?|likelihood|odds)"
    # Portuguese, Vietnamese, Indonesian, Arabic and Hindi
    r"|é\s(?:a\s(?:opção\s)?)?mais\sprovável|có\s(?:khả\snăng|xác\ssuất)\s(?:cao\snhất|cao\shơn)"
    r"|(?:ist|est|es|é|è|is|és)\s(?:die|la|a|het)\s(?:(?:richtige|wahrscheinlichste|bonne|juiste)\s"
    r"(?:antwort|option|réponse|antwoord)|(?:respuesta|resposta|risposta|réponse|opción|opção|opció)"
    r"\s(?:corre(?:ta|tta|cta|to)|certa|correcte|juste))|ist\s(?:richtig|am\swahrscheinlichsten)"
    # Basque
    r"|(?:aukera\s)?da\s(?:erantzuna?(?:\s(?:zuzena|egokia))?|zuzena)|aukeratzen\sdut"
    r"|(?:paling|lebih)\smungkin|هو\s(?:الأرجح|الأكثر\sاحتمال[اًا]*)|सबसे\s(?:अधिक\s)?संभावित\sहै)"
    r"(?!\s?\?|\s(?:not|wrong|false|incorrect|unlikely|(?:to|of)\s(?:fail|be(?:ing)?\s(?:wrong|false))))"
)


# Words that state the following letter or option text as the answer.
_STATES = (
    rf"(?:{_CALLED}|{_SAYS})\s*{_SURELY}(?:(?:the|la|die|donc)\s)?"
    rf"(?:(?:(?:a|o|el|il|le)\s)?{_NAMED}\s)?[\"']?"
)

# Words that cancel the statement after them: doubt, a condition, or another rank.
_OR = r"\b(?:or|ou|oder|или|lub)\b"
_FILLING = (
    r"(?:\s(?:that|if|whether|the|case|my|its|it|this|to|say|correct|right|true|best|most|likely|la|die"
    r"|das|het|de))*"
)
_DOUBTED = re.compile(
    r"(?:如果|假如|若|もし|만약|不)[^\n。,]{0,6}\Z"
    r"|(?<!\w)(?:إذا|اذا|لو|هل|لا(?!\sشك)|ليست?|अगर|यदि|क्या|اگر)(?!\w)[^\n.,،।]{0,24}\Z"
    r"|\b(?:nếu|liệu|jika|kalau|bila|apakah|se|caso|pokud|dacă|якщо|αν|hvis|jos|ако|ako"
    r"|kung|kui|jei)\s[^\n.,]{0,24}\Z|\b(?:ja|om|nëse|kama|ef)\s\Z|\bha\sa\s(?:\w+\s)?\Z"
    r"|\b(?:not|if|unless|whether|suppose|supposing|assuming|unsure|unclear|si|wenn|falls|ob|als|если"
    r"|(?:some|others|many|most|people|they|critics|experts|markets)\s(?:\w+\s)?"
    r"(?:say|think|believe|argue|claim|guess|predict|expect)"
    r"|(?<!no\s)(?<!without\s)(?<!without\sa\s)doubt\w*"
    rf"|(?:{_NOT})(?:\s\w+)?\s(?:think|believe|say|claim|sure|certain|convinced|clear|mean)"
    rf"|(?:unlikely|impossible|wrong|false|incorrect)\s(?:that|if|to)){_FILLING}[ ]*\Z",
    re.IGNORECASE,
)
_LESSER = re.compile(
    r"\b(?:least(?:\s\w+)?|worst|second(?:[ -](?!thought)\w+){0,2}|third|next[ -]\w+|runner-up"
    r"|opposite|other|alternative|wrong|incorrect|unlikely|unlikeliest"
    r"|falsche|fausse|mauvaise|(?:their|his|her|\w+(?<!\bit)(?<!at)(?<!re)(?<!let)'s)(?:\s\w+){0,2}"
    r")[ ]\Z",
    re.IGNORECASE,
)
_NOUN = re.compile(_ANSWER, re.IGNORECASE)
_LOOKED_BACK = 80  # characters
_OUT = r"(?:unlikely|improbable|impossible|(?:ruled|rule|is)\sout)"
# What makes a letter before it the conclusion, if a line or a sentence ends behind the letter.
_CONCLUDES = (
    r"(?:(?:\A|(?<=\n)|(?<=[.!?:]\s))(?:so|hence|thus|therefore|sure|okay|final|must\sbe|in\sconclusion"
    r"|(?:(?:most|very|almost)\s)?(?:probably|likely|definitely|clearly|certainly))[,:!.]?\s"
    rf"|\b(?:since|as|because|given\sthat)\s(?:(?!{_NOT})[^.\n]){{0,60}}?\b{_OUT},\s"
    rf"|(?<!not\s)(?<!n't\s)\b{_OUT}(?:[.;]\s|[,;]?\s(?:so|hence|thus|therefore),?\s)"
    r"|\bnot\s\(?[A-Z]\)?,?\sbut\s(?:(?:rather|instead|it(?:'s|\sis))\s)?)"
)
_EAST_ASIAN = (  # "the answer is" and "I choose", and what may follow the letter
    r"(?:(?:答案|答え|正解|回答|정답|답)(?:应该|應該)?\s?(?:是|为|為|は|은|는|:)"
    r"|(?:\A|(?<=[\n。,]))(?:我会?)?(?:选择|選擇|选|選))[\s:\"'(\[]*",
    r"[)\"'\]]*\s?(?:です|だ|である|입니다|이다|选项|選項)?\s?(?=[。.!,:(\n]|\Z)",
)
# The same in other scripts, and where "is" comes after the letter.
_OTHER_SCRIPTS = (
    r"(?:(?:(?<!\w)(?:(?:ال)?(?:إجابة|اجابة|جواب|خيار|اختيار)|پاسخ|گزینه|उत्तर|जवाब|विकल्प|जवाफ|উত্তর|જવાબ|விடை|பதில்"
    r"|సమాధానం|ಉತ್ತರ|ഉത്തരം|ਜਵਾਬ|ଉତ୍ତର|පිළිතුර|መልሱ|პასუხი|პასუხია|պատասխանը|պատասխան"
    r"|erantzuna?(?:\s(?:zuzena|egokia))?|cevap|cevabım|yanıt|cavab|javob|жауап|התשובה)(?!\w)"
    r"|คําตอบ|ចម្លើយ|ຄໍາຕອບ|အဖြေ)"
    r"(?:\s(?:الصحيحة?|الأرجح|النهائية?|هي|هو|صحیح|درست|सही|है|হল|הנכונה|היא|არის)(?!\w)"
    r"|ที่ถูกต้อง|คือ|ត្រឹមត្រូវ|គឺ|ທີ່ຖືກຕ້ອງ|ແມ່ນ|မှန်|မှာ|သည်)*"
    r"|(?<!\w)(?<!لا\s)(?:أختار|سأختار|اخترت)(?:\sالخيار)?(?!\w)"
    r"|(?<!\w)मैं(?:\sविकल्प)?(?=\s[\"'(\[]*[A-Za-z][)\"'\]]*\s(?:को\s)?चुन)"
    r"|ฉันเลือก)[\s:\"'(\[]*",
    r"[)\"'\]]*\s?(?:(?:सही\s)?है|होगा|आहे|हो|છે|(?:को\s)?चुन\w*[^\n।.]{0,12}|ہے|(?:درست\s|صحیح\s)?است|হবে|ആണ്|ਹੈ"
    r"|වේ|ነው|է|(?:aukera\s)?da|['-]?d[iıuü]r|şıkkı(?:dır)?|bo'ladi)?\s?(?=[।۔։.!,،:(\n]|\Z)",
)
_NUMBER_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b")
_DENIED = re.compile(rf"[\W_]*(?:(?:very|highly|most)\s)?{_UNLIKELY}\b", re.IGNORECASE)


def extract_choice(response: str, options: Sequence[str]) -> int | None:
    """Return the index in ``options`` of the chosen option, or None without a choice.

    ``options`` are in the order shown to the model, from letter A on.
    """
    text = _plain(response)
    if not text:
        return None
    shown = [_folded(_plain(option)) for option in options]
    _, _, lone_letter = _patterns(len(options))
    alone = lone_letter.fullmatch(text)
    if alone:
        return LETTERS.index(alone["letter"].upper())
    same = _equal(text, shown)
    if same is not None:
        return same
    stated, is_clear = _last_stated(text, shown)
    if stated is not None or not is_clear:
        return stated
    first = _leading(text, shown)
    return first if first is not None else _stated_text(text, shown)


def _folded(text: str) -> str:
    """Return the text in lower case, with digits in place of number words."""
    return _NUMBER_WORD.sub(lambda found: str(_NUMBER_WORDS.index(found[0])), text.casefold())


def _plain(response: str) -> str:
    """Return the answering part of a response without markup, one statement a line."""
    text = _shortened(before_next_question(answering_part(response)))
    text = _TAG.sub("\n", _LETTER.sub(r"(\1)", text))
    text = _shortened(unicodedata.normalize("NFKC", text).translate(_QUOTES))
    text = _FONT.sub(r"\1", text)
    text = _BOXED.sub(r"\nThe answer is: \1\n", text)
    lines = (" ".join(line.split()) for line in _MARKUP.sub("", text).splitlines())
    return "\n".join(filter(None, lines))


def _shortened(text: str) -> str:
    if len(text) <= 2 * _MOST_CHARS:
        return text
    return f"{text[:_MOST_CHARS]}\n…\n{text[-_MOST_CHARS:]}"


@lru_cache(maxsize=32)
def _patterns(count: int) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a stated letter, a line that starts with a letter, and a letter alone."""
    letters = LETTERS[:count]
    # The letter must not be part of a word or a name, as in "C++", "U.S.", "A-list", "D&D".
    ends = r"(?![\w+&'-]|[./]\w)"
    bracketed = rf"[(\[{{\"'](?P<%s>[{letters}])[)\]}}\"']"
    delimited = rf"(?P<%s>[{letters}])(?=\s*(?:[):;!?\n]|[.,](?!\w)|\Z)|\s(?:\(|[-–—]\s|{_WHY}))"
    rejected = (
        r"(?!\s(?:is|seems|looks|was|will|would|can|could|might|may|has|does|did)\b"
        rf"(?:\s\w+){{0,2}}?\s(?:{_NOT}|less|un\w+|{_UNLIKELY}|fail|out|excluded|rejected)\b"
        r"|\s\w+n't\b|\s(?:could|might|may)\b"
        r"|\s(?:(?:ist|est|es)\s(?:nicht|un\w+|fal\w+|fau\w+|im\w+|peu)|n'est|no\ses)\b)"
    )
    upper = letters.replace("A", "").replace("I", "")
    # A letter before a word must be upper case, and not A or I, which are also words.
    bare = rf"(?-i:(?P<%s>[{upper}])){ends}{rejected}" if upper else r"(?P<%s>(?!))"
    one = "|".join(form % f"l{n}" for n, form in enumerate((bracketed, delimited, bare)))
    before = rf"{_STATES}(?:{one})"
    joins = rf"(?:that|so|and|but|think|therefore|hence|thus|{_NAMED})"
    starts = rf"(?:\A|(?<=\n)|(?<=[.,;:!?]\s)|\b{joins}\s)"
    named = rf"(?:{_NAMED}|الخيار|الإجابة|विकल्प|उत्तर)"
    likely = rf"{starts}(?:{named}\s)?\(?(?-i:(?P<l3>[{letters}]))\)?[.,]?\s{_BEST}"
    alone_before = rf"(?<!\n[{letters}]\n)(?<!\A[{letters}]\n)"  # a list of letters is no answer
    last = (
        rf"(?<=\n){alone_before}[(\[\"']?(?:{_NAMED}[\s:]+)?\(?(?P<l4>[{letters}])[)\]\"']?[.!]?\Z"
    )
    leading = rf"[(\[\"']?(?:{_NAMED}\s)?\(?(?P<letter>[{letters}])"
    follows = (
        rf"(?:[)\]\"']+[.:,;]?|[.:;](?!\w|\s(?-i:[A-Z])[.]))(?:\s|\Z)|,?\s{_WHY}|\s(?:[-–—]\s|\()"
    )
    follows += rf"|\n|\Z|,?\s(?:not|over|rather\sthan|instead\sof)\s\(?[{letters}]\)?[.!]?\Z"
    concluded = (
        rf"{_CONCLUDES}(?:it's\s)?[(\"']?(?:{_NAMED}\s)?\(?(?-i:(?P<l5>[{letters}]))[)\"']?[.!]?(?=\n|\Z)"
        rf"|(?<=[.!]\s)(?<!\b[{letters}][.!]\s)\(?(?-i:(?P<l6>[{letters}]))\)?[.!]?\Z"
        rf"|(?:{_EAST_ASIAN[0]}|{CORRECTS_IN_EAST_ASIAN})(?P<l7>[{letters}]){_EAST_ASIAN[1]}"
        rf"|{_OTHER_SCRIPTS[0]}(?P<l8>[{letters}]){_OTHER_SCRIPTS[1]}"
        rf"|{CORRECTS}(?:{_NAMED}\s)?[(\"']?(?-i:(?P<l9>[{letters}]))[)\"']?"
        rf"(?=[.;:!]?(?:\n|\Z)|[.;:!]\s|\s[—–-]\s|,?\s(?:{_WHY}|not\b))"
    )
    alone = rf"[\W_]*(?:the\s)?(?:{_NAMED}[\s:]+)?[\W_]*(?P<letter>[{letters}])[^\w?+]*"
    return (
        re.compile(f"{before}|{likely}|{last}|{concluded}", re.IGNORECASE),
        re.compile(rf"^{leading}(?:{follows})", re.IGNORECASE | re.MULTILINE),
        re.compile(alone, re.IGNORECASE),
    )


def _last_stated(text: str, shown: Sequence[str]) -> tuple[int | None, bool]:
    """Return the last stated option or None, and False if the statement has several letters."""
    choice = None
    is_clear = True
    count = len(shown)
    for found in _patterns(count)[0].finditer(text):
        name = found.lastgroup or ""
        if not _is_meant(text, found, found.start(name if name == "l3" else 0)):
            continue
        is_clear = _is_single(text, found.end(name), count)
        choice = _option_at(text, found.start(name), shown) if is_clear else None
    return choice, is_clear


def _is_single(text: str, end: int, count: int) -> bool:
    """Return True if no other letter, condition or question mark follows a letter's ``end``."""
    letters = LETTERS[:count]
    lower = letters.lower().replace("a", "").replace("i", "")
    link = rf"[,;/&(]|[-–—.]\s|{_OR}|\b(?:and|o|of|e|y|et|und|en|и|maybe|perhaps)\b"
    # The words A and I stand before another word; letters of a list stand before "and".
    listed = rf"(?:and|or|und|et|y)\s[(\"]?[{letters}]\b"
    others = (
        rf"[)\"'\]]*(?:[\s,;(]*{_OR}|\?|\s(?:only\s)?(?:if|unless)\b"
        rf"|\s*(?:(?:{link})\s*)+[(\"]?(?:[{letters}]\b(?!'|\s(?!{listed})\w)|[{lower or '+'}]\b))"
    )
    return re.compile(others).match(text, end) is None


def _is_meant(text: str, found: re.Match[str], start: int) -> bool:
    """Return True if a statement is not doubted, conditional, or about another rank."""
    before = text[max(0, start - _LOOKED_BACK) : start]
    is_noun = _NOUN.match(found.group()) is not None
    return not _DOUBTED.search(before) and not (is_noun and _LESSER.search(before))


def _option_at(text: str, start: int, shown: Sequence[str]) -> int:
    """Return the index of the option whose text, or else whose letter, stands at ``start``."""
    rest = _folded(text[start : start + _MOST_CHARS])
    same: list[int] = []
    for index, option in enumerate(shown):
        is_whole = not rest[len(option) :][:1].isalnum()
        if len(option) > 1 and rest.startswith(option) and is_whole:
            same.append(index)
    longest = max(same, key=lambda index: len(shown[index]), default=None)
    return LETTERS.index(text[start].upper()) if longest is None else longest


def _leading(text: str, shown: Sequence[str]) -> int | None:
    """Return the option whose letter begins the text, unless lines begin with different letters."""
    pattern = _patterns(len(shown))[1]
    letters = LETTERS[: len(shown)]
    first = pattern.match(text)
    if first is None or len({found["letter"].upper() for found in pattern.finditer(text)}) > 1:
        return None
    shares = re.findall(rf"\b([{letters}])\b(?:[\s(:=–-]*\d|[.)]\s)", text.splitlines()[0])
    start = first.start("letter")
    if not _is_single(text, start + 1, len(shown)):
        return None
    named = LETTERS.index(text[start].upper())
    rest = text[start + 1 :].lstrip(" ).:;-–—\"'],")
    if _DENIED.match(rest) and not _folded(rest[:_MOST_CHARS]).startswith(shown[named]):
        return None
    return None if len(set(shares)) > 1 else _option_at(text, start, shown)


def _equal(text: str, shown: Sequence[str]) -> int | None:
    """Return the option whose text is the whole response, if it is the only one."""
    said = _folded(text).strip(" .!\"'()[]")
    same = [index for index, option in enumerate(shown) if option.strip(" .!\"'()[]") == said]
    return same[0] if len(same) == 1 else None


def _stated_text(text: str, shown: Sequence[str]) -> int | None:
    """Return the option whose text is stated, begins a line or sentence; None if several are."""
    # "Yes: 0.3" and "Yes - 30 %" are shares.
    ends = rf"(?=\s*(?:[.;!)\"'](?!\w)|:(?!\w|\s*\d)|\n|\Z)|,?\s{_WHY}|\s[-–—]\s(?!\d))"
    # Try the longest option first, because its text may begin with another option's text.
    order = sorted(range(len(shown)), key=lambda index: -len(shown[index]))
    clear = [index for index in order if shown[index] and shown.count(shown[index]) == 1]
    # "1. It rains" is an item of a list.
    forms = [re.escape(shown[n]) + r"(?![.)]\s\w)" * shown[n].isdecimal() for n in clear]
    forms = [rf"{f}(?:\s\({LETTERS[n]}\))?" for n, f in zip(clear, forms, strict=True)]
    texts = "|".join(f"(?P<o{index}>{form})" for index, form in zip(clear, forms, strict=True))
    if not texts:
        return None
    sentence = r"(?P<sentence>(?<!\b\w[.]\s)(?<=[.!]\s))"
    surely = r"(?:(?:(?:most|very|almost)\s)?(?:probably|likely|definitely|certainly)[,:]?\s)?"
    begins = rf"(?:(?P<stated>{_STATES})|(?:\A[\"']?|(?<=\n)|{sentence}){surely})"
    said = _folded(text)
    every = re.compile(rf"{begins}(?:{texts}){ends}", re.IGNORECASE).finditer(said)
    found = [match for match in every if _is_meant(said, match, match.start())]
    if any(match["stated"] for match in found):
        found = [match for match in found if match["sentence"] is None]
    names = {match.lastgroup or "" for match in found}
    return int(names.pop()[1:]) if len(names) == 1 else None
