"""Numbers and rows to files and screens; pure."""
