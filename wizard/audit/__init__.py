"""What the journals say: list, show, verify, export. It reads; it never changes a run."""
