"""runbook: resume, replay, backfill or reset a Spark Structured Streaming job, and prove every step."""

__version__ = "0.1.0"
