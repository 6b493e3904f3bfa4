"""Turns files into runs, and results into reports."""
