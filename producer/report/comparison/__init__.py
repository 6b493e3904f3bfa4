"""Reports of two runs beside each other: sentences, Markdown, and a page."""
