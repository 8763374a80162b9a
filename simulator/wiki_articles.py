"""Stories of the world as wikitext, in the languages of the simulated wikis."""

from __future__ import annotations

import re

from simulator.world import Story, World


def article(story: Story, world: World, paragraphs: tuple[str, ...] = ()) -> str:
    """Return a story as the wikitext of an article; without its markup it is the paragraphs.

    The last of three or more paragraphs has the heading "Aftermath".
    """
    blocks = [_marked_up(text, story, world) for text in paragraphs or story.paragraphs]
    if len(blocks) > 2:
        blocks[-1] = f"== Aftermath ==\n{blocks[-1]}"
    return "\n\n".join(
        [
            "{{Short description|Recent event}}\n{{Infobox event\n| name = " + story.title,
            "| map = {{Location map|World|label={{nowrap|Here}}}}\n}}",
            "[[File:View.jpg|thumb|upright=1.2|A view, seen from the [[tower]].]]",
            *blocks,
            '{| class="wikitable"\n! Year !! Count\n|-\n| 1 || 2\n|}',
            "== See also ==\n* [[List of events]]\n\n=== Elsewhere ===\n* [[Other lists]]",
            "==References==\n{{Reflist}}\n<references />",
            "== External links ==\n* [https://example.org/ Official site]\n{{Navbox events}}",
            f"[[Category:{story.topic.capitalize()}]]\n[[Category:Events]]",
        ]
    )


def _marked_up(paragraph: str, story: Story, world: World) -> str:
    """Add links, emphasis, comments and footnotes that a reader of the text does not see."""
    names = [name for name in world.names(story.month) if re.search(rf"\b{name}\b", paragraph)]
    first, second, third, *_ = [*names, "-", "-", "-"]
    paragraph = re.sub(rf"\b{first}\b", f"'''[[{first}]]'''", paragraph, count=1)
    paragraph = re.sub(rf"\b{second}\b", f"[[{second} (name)|{second}]]", paragraph, count=1)
    paragraph = re.sub(rf"\b{third}\b", f"<i>{third}</i><!-- check -->", paragraph, count=1)
    note = '.<ref name="a">{{cite web |url=https://example.org/a |title=A [[note]]}}</ref> '
    return paragraph.replace(". ", note, 1) + '<ref name="a" />'


def monitored_article(story: Story, paragraphs: tuple[str, ...]) -> str:
    """Return a monitored page: a lead that is always the same, then what is new this month."""
    return "\n\n".join(
        [
            "{{Infobox subject}}\nThe subject of this article has been '''documented''' for long.",
            "== Developments ==\n" + "\n\n".join(paragraphs),
            "== Notes ==\n{{Notelist}}\n\n== Further reading ==\n* ''A book''",
            f"[[Category:{story.topic.capitalize()}]]",
        ]
    )


def german_article(story: Story, world: World, paragraphs: tuple[str, ...] = ()) -> str:
    """Return a story as the wikitext of a German article; see ``article``."""
    blocks = [_marked_up(text, story, world) for text in paragraphs or story.paragraphs]
    if len(blocks) > 2:
        blocks[-1] = f"== Nachwirkung ==\n{blocks[-1]}"
    return "\n\n".join(
        [
            "{{Infobox Ereignis\n| Name = " + story.title + "\n}}",
            "[[Datei:Ansicht.jpg|mini|hochkant=1.2|Eine Ansicht, vom [[Turm]] aus.]]",
            *blocks,
            '{| class="wikitable"\n! Jahr !! Zahl\n|-\n| 1 || 2\n|}',
            "== Siehe auch ==\n* [[Liste von Ereignissen]]",
            "== Literatur ==\n* Ein Buch. ISBN 3-00-000000-0.",
            "== Weblinks ==\n* [https://example.org/ Offizielle Seite]",
            "== Einzelnachweise ==\n<references />\n{{Navigationsleiste Ereignisse}}",
            "[[Kategorie:Ereignis]]",
        ]
    )


def german_monitored_article(story: Story, paragraphs: tuple[str, ...]) -> str:
    """Return a monitored page of the German wiki; see ``monitored_article``."""
    return "\n\n".join(
        [
            "{{Infobox Thema}}\nDas Thema dieses Artikels ist seit langem '''dokumentiert'''.",
            "== Entwicklungen ==\n" + "\n\n".join(paragraphs),
            "== Literatur ==\n* ''Ein Buch''\n\n== Einzelnachweise ==\n<references />",
            "[[Kategorie:Thema]]",
        ]
    )


ARTICLES = {"en": article, "de": german_article}
MONITORED = {"en": monitored_article, "de": german_monitored_article}
