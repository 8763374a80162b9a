"""Adapters (PEFT), merged into the weights of their base model."""
