"""Programs of this installation: how they are started, and the files by which running ones are seen."""
