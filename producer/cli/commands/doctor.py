"""`proctor doctor`: checks this machine and its Redis, with a fix for each problem."""

import click

from producer.cli.options.global_options import command as declare
from producer.cli.output import Style, printable
from producer.cli.session import Session, pass_session
from producer.text import plural

_STYLES: dict[str, Style] = {"ok": "green", "warn": "yellow", "fail": "red"}


@declare()
@click.option(
    "--acl", "only_acl", is_flag=True, help="Print the ACL command that makes a Redis user for Proctor."
)
@pass_session
def command(session: Session, *, only_acl: bool) -> int:
    """Check this machine and its Redis: one line per check, and how to fix what failed.

    With --acl it checks nothing and prints one line for redis-cli, in which PASSWORD is to be replaced.

    Exits with 0 if no check failed, 3 if one of a server failed, 1 if another one failed. Warnings are no
    failures.
    """
    from producer.cli.doctor_checks import access_rules, diagnose  # noqa: PLC0415 - start-up: `--help` must not load redis

    output = session.output
    if only_acl:
        output.data(access_rules(session))
        return 0
    found = diagnose(session)
    checks = found.checks
    if session.options.json:
        output.document(found)
        return found.exit
    width = max(len(check.name) for check in checks)
    indent = 5 + 1 + width + 2
    for check in checks:
        status = output.paint(f"{check.status:<5}", _STYLES[check.status])
        output.data(
            f"{status} {check.name:<{width}}  {output.folded(printable(check.detail), indent=indent)}"
        )
        if check.fix:
            fix = output.folded(printable(check.fix), indent=indent)
            output.data(f"{'':<{indent}}{output.paint(fix, 'dim')}")
    warnings = sum(check.status == "warn" for check in checks)
    failures = sum(check.status == "fail" for check in checks)
    output.data("")
    verdict = f"{plural(failures, 'failure')}, {plural(warnings, 'warning')}"
    output.data(verdict if failures or warnings else "all is well")
    return found.exit
