"""The truth about runs, chunks and items in Redis, changed only by small Lua scripts."""
