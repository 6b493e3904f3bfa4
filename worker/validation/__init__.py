"""The engine of the validation specification, pure: an output and a case in, one of seven statuses out."""
