"""Textual screens over the engine and the diagnosis. Nothing is looked at or done here: a thread asks them, and tells."""
