"""Review: what people say of the answers of a run, where it is kept, and what to look at next."""
