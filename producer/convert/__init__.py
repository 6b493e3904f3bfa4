"""Translates evaluations of other tools into benches: read with their places, translated, written."""
