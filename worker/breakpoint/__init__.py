"""The breakpoint engine of the document, pure: decisions, affect, mementos, the order of the flow."""
