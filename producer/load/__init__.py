"""Input files to validated items; every error names file and place."""
