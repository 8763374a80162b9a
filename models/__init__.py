"""Models: one backend per file, and the catalogue of the models.

Rules of this room:

- A backend states its abilities once (``backends.py``) and never imports another backend.
- Imports go down: backends, servers, then codec, options, generation and training, then scoring,
  weights, catalogue.
- Importing a module loads no model and no library that takes seconds.
- A loss is a sum of natural-log terms in float64. It is stored with the numbers of tokens,
  characters and bytes of the text that it covers (docs/adr/0002-loss-unit.md).
"""
