"""The engine of the breakpoint specification, pure: decisions, affect, mementos, the order of the flow."""
