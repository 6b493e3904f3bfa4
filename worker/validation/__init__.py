"""The validation engine of the document, pure: an output and a case in, one of seven statuses out."""
