"""Tasks: thin Prefect wrappers of the lower rooms' functions, with one outside effect each.

Rules of this room: what is done stands in the lower rooms; here stand retries, names of task runs
and the bounded fan-out. Nothing is cached by Prefect: the files under the data root say what is
done.
"""
