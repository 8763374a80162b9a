"""Models: one backend per file, and the catalogue of the models.

Rules of this package:

- A backend states its abilities once (``backends.py``) and never imports another backend.
- A module imports only from its own or a later layer of this list: backends; servers; options,
  generation, training; scoring, weights, catalogue.
- Importing a module loads no model and no library that takes seconds to load.
- A loss is a float64 in nats. The table of losses also states the number of tokens, characters
  and bytes of the text that the loss covers (docs/adr/0002-loss-unit.md).
"""
