"""Prefect tasks: thin wrappers of functions in other packages, with one side effect each.

Tasks only add retries, names of task runs and a bounded number of concurrent runs. Prefect caches
no results, because the files under the data root show which work is done.
"""
