"""Estimates that Python, not SQL, computes at publication: the panels of models.

``panel.py`` holds the estimator, which works on arrays; ``cutoffs.py`` and ``contamination.py``
fit single curves relative to it, by ``regression.py``. ``estimate.py`` reads a snapshot's cells,
fits the panels, and writes tables ``panel_*`` of the same snapshot.
"""
