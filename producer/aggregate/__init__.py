"""Rows to numbers; pure."""
