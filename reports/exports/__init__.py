"""Exports, a file each: figures, tasks of lm-eval, data sets, records of Every Eval Ever."""
