"""A server of vLLM on this machine, started for one model after another."""
