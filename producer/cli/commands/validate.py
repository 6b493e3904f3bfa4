"""`proctor validate FILE`: all checks of a submit, and nothing is sent."""

import click

from producer.cli.completions import complete_files
from producer.cli.options.global_options import TopicOption
from producer.cli.options.global_options import command as declare
from producer.cli.options.run_options import CaseOptions, ModelOptions
from producer.cli.options.shared_options import InputOptions, SubmitChoice, config_option, one_file
from producer.cli.session import Session, pass_session
from shared.errors import UsageError
from shared.kinds import all_kinds


@declare()
@click.argument("file", shell_complete=complete_files, required=False)
@config_option
@click.option(
    "--kind",
    type=click.Choice([kind.name for kind in all_kinds()]),
    help="What the file describes [default: detected from its content].",
)
@click.option(
    "--api-base",
    metavar="URL",
    cls=TopicOption,
    topics=("models",),
    help="As for `run`, where the file does not name it.",
)
@click.option(
    "--outputs",
    metavar="FILE",
    shell_complete=complete_files,
    cls=TopicOption,
    topics=("cases",),
    help="As for `run`: check these recorded outputs too; no model is called.",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    cls=TopicOption,
    topics=("cases",),
    help="As for `run`: only cases with this tag.",
)
@click.option("--list", "is_list", is_flag=True, help="Print the names of the items, one a line.")
@pass_session
def command(
    session: Session,
    *,
    file: str | None,
    config: str | None,
    kind: str | None,
    api_base: str | None,
    outputs: str | None,
    tags: tuple[str, ...],
    is_list: bool,
) -> int:
    """Check FILE (`-`: stdin) without submitting it.

    Reports every problem with its line and how to fix it; for a valid file, what it contains.
    """
    from producer.cli import submission  # noqa: PLC0415 - start-up: `--help` must not load pydantic

    named = one_file(file, config)
    if named is None:
        raise UsageError("name a FILE", hint="see `proctor validate --help`")
    choice = SubmitChoice(
        InputOptions(kind=kind), ModelOptions(api_base=api_base), CaseOptions(outputs=outputs, tags=tags)
    )
    asked = submission.unread(session, named, choice)
    return submission.print_contents(session, asked, is_list=is_list)
