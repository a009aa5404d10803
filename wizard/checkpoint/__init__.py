"""Reads a checkpoint directory: what Spark wrote, what is whole, what is not. Never changes it."""
