"""What goes in and what comes out, by kind: contracts, vocabularies, and the settings that a run keeps."""
