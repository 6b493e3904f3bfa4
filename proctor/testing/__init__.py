"""Tests that others run against their own code; they need no test framework."""
