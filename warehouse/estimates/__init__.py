"""Estimates that Python, not SQL, computes at publication: the panels of models.

Each module has its formulas in its docstring, and needs only those above it:

- ``difficulty``: lambda, the difficulty of the months, and each model's sensitivity to it.
- ``panel``: each model's gap after its cutoff and its growth, with their errors.
- ``regression``, ``pairs``, ``cutoffs``: the change in one curve, relative to lambda.
- ``contamination``: single months that are too low.
- ``untreated``: lambda of the months before onsets, and all changes of a panel in turn.
- ``staggered``, ``sources``, ``bends``, ``coincident``: changes that may be the source's.
- ``panels``, ``changes``, ``panel_rows``: curves of a snapshot, the verdict on each, its rows.
- ``questions``: scores of forecasts, adjusted for the difficulty of questions.
- ``processes``, ``estimate``: all panels of a snapshot, written to its tables ``panel_*``.
"""
