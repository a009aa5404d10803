"""Where a stream reads from: one file each, one interface."""
