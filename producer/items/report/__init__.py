"""Writers for kinds whose results are single items: what a kind does without writers of its own."""
