"""Words with which a response corrects itself, as in "I'd pick B... no, scratch that, C".

``CORRECTS`` matches such words, and ``CORRECTS_IN_EAST_ASIAN`` those of Chinese, Japanese and
Korean. The letter that follows them is the answer.
"""

from __future__ import annotations

_MARKS = r"[,:;.!–—-]"
# Words that also begin other sentences ("No rain"), so a mark must follow them.
_WEAK = (
    r"(?:no|nope|nah|wait|hmm?|oh|ah|oops|sorry|apologies|hold\son|one\smoment|actually|rather"
    r"|non|attends|attendez|pardon|désolée?"
    r"|nein|ach|moment|halt|entschuldigung|sorry"
    r"|espera|perdón|perdona"
    r"|aspetta|scusa|scusate"
    r"|não|espere|desculpe?"
    r"|нет|стоп|погодите|подождите|извините|простите)"
)
_STRONG = (
    r"(?:(?:scratch|strike|forget)\sthat|correction|my\s(?:mistake|bad)|never\s?mind|i\smeant?"
    r"|make\s(?:it|that)|or\srather|(?:on|upon)\s(?:second\sthoughts?|reflection)"
    r"|i\stake\s(?:that|it)\sback|let\sme\s(?:correct|revise)\s(?:that|this|myself|my\sanswer)"
    r"|i(?:'ll|\swill|'m)?\s(?:change|changing)\smy\s(?:answer|mind)(?:\sto)?"
    r"|plutôt|je\sme\s(?:corrige|reprends|trompe)|en\sfait|je\sveux\sdire|je\svoulais\sdire"
    r"|doch(?:\slieber)?|lieber|korrektur|vielmehr|besser\sgesagt|ich\s(?:korrigiere(?:\smich)?"
    r"|meine)"
    r"|mejor(?:\sdicho)?|corrijo|me\scorrijo|corrección|más\sbien|quiero\sdecir"
    r"|anzi|mi\scorreggo|correzione|meglio|piuttosto|volevo\sdire"
    r"|melhor(?:\sdizendo)?|ou\smelhor|aliás|corrigindo|correção|quero\sdizer"
    r"|вернее|точнее|поправка|исправляю(?:сь)?|лучше|скорее)"
)
_STATED = (
    r"(?:(?:it's|it\sis|it\sshould\sbe|i'll\s(?:go with|say|pick|choose)|go with|c'est|es ist"
    r"|es|è|é|это)\s)?"
)
CORRECTS = (
    r"(?:\A|(?<=\n)|(?<=[.,;:!?)–—-]\s)|(?<=[–—]))"
    rf"(?:(?:{_WEAK}|{_STRONG})\s?{_MARKS}{{0,4}}\s){{0,3}}"
    rf"(?:{_WEAK}\s?{_MARKS}{{1,4}}|{_STRONG}\s?{_MARKS}{{0,4}})\s{_STATED}"
)
CORRECTS_IN_EAST_ASIAN = (
    r"(?:\A|(?<=[\n。、,.!]))\s?(?:不对?|不對|不是|いや|いえ|아니(?:요|야)?)[。、,.!]\s?"
    r"(?:应该|應該)?(?:是|选择?|選擇?)?[\s:\"'(\[]*"
)
