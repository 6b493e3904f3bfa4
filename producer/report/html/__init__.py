"""What all HTML reports share: the frame of the page, its style and script, charts and small parts."""
