"""`proctor submit FILE`: puts a file into the queue and prints the run's id, nothing else."""

import click

from producer.cli.completions import complete_files
from producer.cli.options.global_options import command as declare
from producer.cli.options.run_options import CaseOptions, ModelOptions, QueryOptions, SelectionOptions
from producer.cli.options.shared_options import (
    InputOptions,
    SubmitChoice,
    config_option,
    one_file,
    submit_options,
)
from producer.cli.session import Session, pass_session
from shared.errors import UsageError


@declare()
@click.argument("file", shell_complete=complete_files, required=False)
@config_option
@submit_options
@pass_session
def command(
    session: Session,
    /,
    *,
    file: str | None,
    config: str | None,
    submit: InputOptions,
    models: ModelOptions,
    cases: CaseOptions,
    selection: SelectionOptions,
    queries: QueryOptions,
) -> None:
    """Submit FILE (`-`: stdin) to the queue and print the run's id.

    All of it or nothing: if a line is invalid, nothing is submitted. Workers connected to the same Redis
    process it; `proctor watch RUN` follows it.
    """
    from producer.cli import submission as asking  # noqa: PLC0415 - start-up: `--help` must not load redis and pydantic
    from producer.cli.live.view import open_view  # noqa: PLC0415 - same

    named = one_file(file, config)
    if named is None:
        raise UsageError("name a FILE", hint="see `proctor submit --help`")
    choice = SubmitChoice(submit, models, cases, selection, queries)
    submission = asking.announced(session, asking.unread(session, named, choice))
    view = open_view(session.output)
    try:
        submitted = submission.send(view)
    finally:
        view.close()
    if problem := asking.lacking_workers(session, submitted):
        session.output.warn(problem)
    asking.print_run_id(session, submitted)
