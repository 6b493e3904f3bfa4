"""`proctor completion SHELL`: prints the completion script of a shell, for `proctor` and `llm-bench`."""

import click
from click.shell_completion import get_completion_class

from producer.cli.options.global_options import COMPLETION_VARIABLE
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session

SHELLS = ("bash", "zsh", "fish")


@declare()
@click.argument("shell", type=click.Choice(SHELLS))
@pass_session
def command(session: Session, shell: str) -> None:
    """Print the completion script for SHELL (bash, zsh or fish), for proctor and llm-bench.

    For bash and zsh put this line into ~/.bashrc or ~/.zshrc: eval "$(proctor completion bash)"

    For fish: proctor completion fish > ~/.config/fish/conf.d/proctor.fish
    """
    from producer import bench  # noqa: PLC0415 - start-up: only its names are needed

    completion = get_completion_class(shell)
    if completion is None:  # pragma: no cover - click has the three shells of the choice
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    programs = {"proctor": COMPLETION_VARIABLE, bench.PROGRAM: bench.COMPLETION_VARIABLE}
    scripts = [completion(root, {}, name, variable).source() for name, variable in programs.items()]
    session.output.data("\n".join(scripts))
