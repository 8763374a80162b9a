"""Tasks: thin Prefect wrappers of lower rooms' functions, with one outside effect each.

Rules of this room: lower rooms do the work; tasks add retries, names of task runs and a bounded
fan-out. Prefect caches nothing: the files under the data root show which work is done.
"""
