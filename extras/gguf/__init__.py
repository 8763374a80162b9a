"""GGUF files (``.gguf``), read by transformers and run as other causal language models."""
