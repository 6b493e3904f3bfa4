"""Reports of cases runs: on the screen, and as files."""
