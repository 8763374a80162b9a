"""Options and plan of a run, retries of its steps, and its end by a signal."""
