"""Tests of conversions from other tools."""
