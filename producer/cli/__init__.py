"""The command line: one file a command under `commands`, and what they share beside it.

    main       the tree of commands, loaded when asked for     options   what works before and after a command
    context    one command's way to settings and Redis         errors    how a failure ends the process
    output     who may write what to stdout and stderr         live      the progress view
    services   local workers and Flower as child processes     follow    watching a run until it ends

`proctor --help` must not pay for Redis, Celery, pydantic or rich, so handlers import those inside functions.
"""
