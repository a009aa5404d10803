"""Walks a proved runbook: journal, lock, plan, undo."""
