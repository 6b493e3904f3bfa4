"""Finds the run that an id on the command line means; for a wrong one, the ids that may have been meant."""

from difflib import get_close_matches
from typing import Final

from producer.cli.context import Session
from shared.errors import UnknownRunError
from shared.runs import RunInfo

LOOKED_AT: Final = 200
"""Runs among which a mistyped id is searched."""
SHOWN: Final = 3


def find_run(session: Session, run: str) -> RunInfo:
    """Returns the run of this id.

    Raises:
        UnknownRunError: there is none; the hint names those that are near, else the last ones.
    """
    try:
        info = session.store.info(run)
    except UnknownRunError as error:
        raise UnknownRunError(error.message, hint=_suggest(session, run), run=run) from None
    session.seen.add(run)
    return info


def _suggest(session: Session, run: str) -> str:
    """Names runs that may have been meant."""
    known = [info.run for info in session.store.list(limit=LOOKED_AT)]
    if not known:
        return f"there are no runs yet in {session.connection.target.display}"
    near = get_close_matches(run, known, n=SHOWN)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"the last runs are {', '.join(known[:SHOWN])}; `proctor runs` lists them"
