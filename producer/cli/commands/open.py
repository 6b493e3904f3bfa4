"""`proctor open [RUN]`: writes the report of a run as a page and opens it in a browser."""

from pathlib import Path

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from producer.report_files import ReportFile, plan_files

FOLDER = "pages"
"""In the data folder: where pages lie that have no other place."""


@declare()
@click.argument("run", shell_complete=complete_runs, default="last")
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write it [default: the data folder].",
)
@click.option("--no-open", is_flag=True, help="Only write it and print its path.")
@pass_session
def command(session: Session, *, run: str, path: Path | None, no_open: bool) -> int:
    """Write the report of RUN [default: last] as a page and open it in a browser.

    RUN is also a stream of `proctor serve`: served, or served@1h. The page is one file that needs
    nothing else. `proctor view` serves the pages of all runs.
    """
    from producer import api, browser  # noqa: PLC0415 - start-up: a report loads the ledger
    from producer.cli import run_lookup  # noqa: PLC0415 - start-up: `--help` must not load redis

    planned = plan_files([path], ["html"]) if path else []
    info = run_lookup.find_results(session, run)
    if not planned:
        folder = session.settings.data_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        planned = [ReportFile("html", folder / f"{info.run.partition('@')[0]}.html")]
    api.report(session.access, info.run, planned)
    page = planned[0].path.resolve()
    session.output.data(str(page))
    if not no_open and not browser.open_browser(page.as_uri()):
        session.output.note("no browser was found here; open the file in one")
    return 0
