"""Tasks: thin, retryable Prefect tasks with one outside effect each; they call the lower rooms."""
