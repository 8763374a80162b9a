"""Models: one kind of scorer a file, and the catalogue of what can be scored.

Rules of this room: scorers never import scorers (``load.py`` chooses one); nothing is loaded at
import; a loss is a sum of natural-log terms in float64, with the tokens, characters and bytes of
exactly the text that it covers (docs/adr/0002-loss-unit.md).
"""
