"""Renders the requests to applications over HTTP: addresses, headers and bodies with the values of a case."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from shared.templates.template_rendering import render
from shared.templates.template_texts import is_template
from shared.upstream.http_mapping import HttpRequest

_WHOLE: Final = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*)\s*\}\}")
_STEP: Final = re.compile(r"\w+")
_ABSENT: Final = object()


def template_values(
    messages: Sequence[Mapping[str, Any]],
    text: str,
    variables: Mapping[str, Any],
    session: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns what templates are rendered with.

    Args:
        messages: all that is sent, the system message first.
        text: the last message.
        variables: of the case.
        session: what the session has brought.
    """
    system = [str(each["content"]) for each in messages if each["role"] == "system"]
    return {
        "input": text,
        "messages": [dict(message) for message in messages],
        "system": "\n\n".join(system),
        "vars": variables,
        "session": session,
    }


def query_values(query: str, variables: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what templates are rendered with for a query.

    Args:
        query: its text.
        variables: what stands beside it in its file.
        session: what the session has brought.
    """
    return template_values([{"role": "user", "content": query}], query, variables, session)


def rendered_request(request: HttpRequest, values: Mapping[str, Any]) -> HttpRequest:
    """Renders a request; values in its address are quoted.

    Raises:
        WrongInput: a template names a value that is not there, or cannot be rendered.

    >>> asked = HttpRequest("http://h/{{ session.id }}", body={"q": "{{ input }}", "k": "{{ vars.k }}"})
    >>> found = rendered_request(asked, {"input": "Hi {{ x }}", "vars": {"k": 3}, "session": {"id": "s/1"}})
    >>> found.url, found.body
    ('http://h/s%2F1', {'q': 'Hi {{ x }}', 'k': 3})
    """
    return HttpRequest(
        render(request.url, _quoted(values)) if is_template(request.url) else request.url,
        request.method,
        {name: render(value, values) for name, value in request.headers.items()},
        rendered_value(request.body, values),
    )


def rendered_value(value: Any, values: Mapping[str, Any]) -> Any:
    """Renders the texts of a JSON value; one that is a name alone becomes the value itself, of its type.

    Raises:
        WrongInput: as `rendered_request`.

    >>> rendered_value(["{{ vars.tags }}", "n: {{ vars.n }}"], {"vars": {"tags": ["a"], "n": 1}})
    [['a'], 'n: 1']
    """
    if isinstance(value, str):
        whole = _WHOLE.fullmatch(value)
        found = _found(whole[1], values) if whole else _ABSENT
        return render(value, values) if found is _ABSENT else found
    if isinstance(value, Mapping):
        return {name: rendered_value(each, values) for name, each in value.items()}
    if isinstance(value, list):
        return [rendered_value(each, values) for each in value]
    return value


def _quoted(value: Any) -> Any:
    """Writes texts as a part of an address has them, so that none of them is taken for more than one."""
    if isinstance(value, str):
        return quote(value, safe="")
    if isinstance(value, Mapping):
        return {name: _quoted(each) for name, each in value.items()}
    return [_quoted(each) for each in value] if isinstance(value, list) else value


def _found(path: str, values: Mapping[str, Any]) -> Any:
    """Follows a name such as `vars.tags[0]`."""
    value: Any = values
    for step in _STEP.findall(path):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _ABSENT
    return value


def is_quick(request: HttpRequest) -> bool:
    """Whether each text of a request is plain, or a name alone.

    >>> [is_quick(HttpRequest("http://h", body=text)) for text in ("{{ input }}", "{{ input|upper }}")]
    [True, False]
    """
    return all(not is_template(text) or _WHOLE.fullmatch(text) for text in texts_in_request(request))


def texts_in_request(request: HttpRequest) -> list[str]:
    """Returns all texts of a request that may be templates.

    >>> texts_in_request(HttpRequest("http://h", body={"a": ["{{ input }}", 1]}))
    ['http://h', '{{ input }}']
    """
    found, left = [request.url, *request.headers.values()], [request.body]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return found
