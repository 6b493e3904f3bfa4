"""The command line: one file per command in `commands`, and the modules that commands share.

    main          the table of commands, imported on demand    options/      options, one dataclass per group
    session       settings, Redis, ledger and queue            submission    submits a file
    work          follows a run to its end                     ending        summary, reports, exit code
    output        stdout and stderr                            error_exit    errors and exit codes
    live/         progress, events, the fleet                  local/        workers, Flower and the demo

`proctor --help` must not pay for Redis, Celery, pydantic or rich, so handlers import those inside functions.
"""
