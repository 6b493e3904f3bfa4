"""`proctor completion SHELL`: prints the completion script of a shell."""

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
    """Print the completion script for SHELL: bash, zsh or fish.

    For bash and zsh put this line into ~/.bashrc or ~/.zshrc: eval "$(proctor completion bash)"

    For fish: proctor completion fish > ~/.config/fish/completions/proctor.fish
    """
    completion = get_completion_class(shell)
    if completion is None:  # pragma: no cover - click has the three shells of the choice
        raise click.UsageError(f"no completion for {shell}")
    context = click.get_current_context().find_root()
    session.output.data(completion(context.command, {}, "proctor", COMPLETION_VARIABLE).source())
