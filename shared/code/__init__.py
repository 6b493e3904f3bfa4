"""Code beside a bench: its text, the process that runs it, and the calls that it is given."""
