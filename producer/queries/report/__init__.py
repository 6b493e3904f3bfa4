"""Writes the files and the console text of an evaluation run, as the harness document shows them; pure."""
