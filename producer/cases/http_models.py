"""Renders the requests to applications over HTTP at submission, so that nothing is sent that cannot be."""

from collections.abc import Mapping, Sequence
from typing import Any

from producer.load.problems import Place
from shared.errors import WrongInput
from shared.templates.rendered_requests import rendered_request, template_values
from shared.upstream.model_target import ModelTarget

_BROUGHT = "-"
"""What a session brings, before there is one."""


def check_judge(target: ModelTarget, root: Place) -> None:
    """Proves that an application can be asked which judges: its questions have no variables of cases.

    Raises:
        InputError: a template names one, or cannot be rendered.
    """
    check_request(target, root, [{"role": "user", "content": _BROUGHT}], _BROUGHT, {})


def check_session(target: ModelTarget, root: Place) -> None:
    """Proves that the request which begins a session names nothing: there is nothing yet.

    Raises:
        InputError: it does.
    """
    if target.http is None or target.http.session is None:
        return
    try:
        rendered_request(target.http.session.request, {})
    except WrongInput as problem:
        place = root.at("model_configs", target.model, "http", "session")
        raise place.error(problem.what, "the first request has no values to name") from None


def check_request(
    target: ModelTarget,
    place: Place,
    messages: Sequence[Mapping[str, Any]],
    text: str,
    variables: Mapping[str, Any],
) -> None:
    """Renders the request of a case.

    Args:
        target: an application.
        place: of the case.
        messages: what it is asked.
        text: the last message.
        variables: of the case.

    Raises:
        InputError: a template names a value that is not there, or cannot be rendered.
    """
    if target.http is None:
        return
    session = target.http.session
    brought = dict.fromkeys(session.take, _BROUGHT) if session else {}
    try:
        rendered_request(target.http.request, template_values(messages, text, variables, brought))
    except WrongInput as problem:
        raise place.error(f"http of {target.model!r}: {problem.what}", problem.hint) from None
