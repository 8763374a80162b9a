"""The codec: compress a text to the number of bytes that a model's loss predicts."""
