"""Examples that run as they are; `proctor demo` and `proctor init` read them from the installed package."""
