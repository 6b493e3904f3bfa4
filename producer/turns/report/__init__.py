"""Writes runs of turns as a page for people."""
