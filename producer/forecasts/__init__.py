"""How many calls a run makes, about what they cost, and which variables they lack, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from producer import text
from producer.sample_api import DEFAULT_PORT
from producer.text import plural
from shared.contracts.query_vocabulary import HEADER_VARIABLE
from shared.errors import UsageError
from shared.upstream.key_variables import ELSEWHERE, ENV_PREFIX, key_in, provider_of, unsendable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from producer.cases.load import PlannedRun
    from producer.load.baselines import Baselines
    from producer.service_documents import ValidateDocument
    from shared.upstream.model_target import ModelTarget

SHOWN: Final = 3
_AUTHORIZATION: Final = "authorization"

SAMPLES: Final = (
    f"--api-base http://localhost:{DEFAULT_PORT}/v1 after `proctor sample-api`, for sample models"
)
OWN_API: Final = "set the api_base of each in model_configs, for an API that needs no key"
"""For judges and models of checks, which `--api-base` does not place."""


class FileContents(NamedTuple):
    """What is in a valid file."""

    document: ValidateDocument
    """For programs."""
    text: str
    """For people."""
    warnings: Sequence[str] = ()


class MissingKeys(NamedTuple):
    """Variables that calls need and do not get in this environment, or what else workers in it lack."""

    why: str
    variables: Sequence[str]
    remedy: str = SAMPLES
    """How to do without them."""

    def as_error(self) -> UsageError:
        """The error for a command that starts its own workers."""
        lines = "; ".join(f"export {name}=…" for name in self.variables)
        return UsageError(self.why, hint=f"{lines}, or {self.remedy}" if lines else self.remedy)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run is going to send."""

    calls: int
    """Calls of the models under test, or requests to the API."""
    of: str
    """What they are made of, such as `4 cases × 2 models`."""  # noqa: RUF001 - a product
    noun: str = "call"
    """The noun for one of them."""
    more: Mapping[str, int] = field(default_factory=dict)
    """Further calls, at most: by whom."""
    cost_usd: float | None = None
    """About, as far as prices are known; None: of nothing."""
    answer_tokens: int | None = None
    """Length that the cost assumes of answers; None where their length is known or bounded."""
    unpriced: Sequence[str] = ()
    """What is not in the cost, because a price is not known."""
    warnings: Sequence[str] = ()
    """What will probably fail."""
    missing: MissingKeys | None = None
    """Variables without which no run of workers with this environment can succeed."""
    items: int | None = None
    """How many items the run has, where that was counted."""
    plan: PlannedRun | None = None
    """What was read of a file of cases for it, so that it is not read again."""
    baselines: Baselines | None = None
    """The same of a file of queries."""

    @property
    def total(self) -> int:
        """All calls, at most."""
        return self.calls + sum(self.more.values())

    def __str__(self) -> str:
        parts = [f"{plural(self.calls, self.noun)} ({self.of})"] if self.calls else []
        parts += [f"at most {plural(count, 'call')} by {whom}" for whom, count in self.more.items() if count]
        if self.cost_usd is not None:
            parts.append(f"at most about {text.cost(self.cost_usd)}{assumption(self.answer_tokens)}")
        if self.unpriced:
            parts.append(f"{' and '.join(self.unpriced)} of unknown price")
        return ", ".join(parts)


def assumption(answer_tokens: int | None) -> str:
    """Says what an estimated cost assumes of answers that nothing bounds.

    >>> assumption(256), assumption(None)
    (', assuming 256 tokens an answer', '')
    """
    return f", assuming {answer_tokens} tokens an answer" if answer_tokens else ""


def model_warnings(targets: Iterable[ModelTarget], environment: Mapping[str, str]) -> list[str]:
    """Names variables of models that are not set here, or that workers do not send.

    Args:
        targets: what is called.
        environment: of this process; workers started here have the same.

    >>> from shared.upstream.model_target import ModelTarget
    >>> model_warnings([ModelTarget("openai/gpt-4o"), ModelTarget("openai/o3")], {})
    ['OPENAI_API_KEY is not set here: calls of openai/gpt-4o, openai/o3 fail unless the workers have it']
    """
    users = dict[str, dict[str, None]]()
    for target in targets:
        for variable in _variables_of(target, environment):
            users.setdefault(variable, {})[target.model] = None
    return [
        _warning(variable, f"calls of {_some(list(models))}", environment)
        for variable, models in users.items()
    ]


def missing_keys(targets: Iterable[ModelTarget], environment: Mapping[str, str]) -> MissingKeys | None:
    """Returns the variables of keys that are not set here; None when all of them are.

    Args:
        targets: what is called.
        environment: of this process.

    >>> from shared.upstream.model_target import ModelTarget
    >>> targets = [ModelTarget("openai/gpt-4o"), ModelTarget("groq/llama-3")]
    >>> found = missing_keys(targets, {"GROQ_API_KEY": "k"})
    >>> found.why, found.as_error().hint.split(",")[0]
    ('OPENAI_API_KEY is not set: calls of openai/gpt-4o would fail', 'export OPENAI_API_KEY=…')
    """
    users = dict[str, dict[str, None]]()
    for target in targets:
        for variable in _variables_of(target, environment):
            if not unsendable(variable, environment):
                users.setdefault(variable, {})[target.model] = None
    if not users:
        return None
    models = list(dict.fromkeys(model for each in users.values() for model in each))
    verb = "is" if len(users) == 1 else "are"
    why = f"{' and '.join(users)} {verb} not set: calls of {_some(models)} would fail"
    return MissingKeys(why, list(users))


def request_warnings(
    headers: Mapping[str, str], bearer_env: str, environment: Mapping[str, str]
) -> list[str]:
    """Names variables of requests to an API that are not set here, or that workers do not send.

    >>> request_warnings({"X-Tenant": "$TENANT_TOKEN"}, "", {"TENANT_TOKEN": "blue"})
    []
    """
    named = [found.strip("{}") for value in headers.values() for found in HEADER_VARIABLE.findall(value)]
    named += [bearer_env] if bearer_env else []
    needed = [
        name
        for name in dict.fromkeys(named)
        if unsendable(name, environment) or not environment.get(name, "").strip()
    ]
    return [_warning(name, "requests", environment) for name in needed]


def _variables_of(target: ModelTarget, environment: Mapping[str, str]) -> Iterator[str]:
    """Yields the variables that calls of a model need and probably do not get."""
    for value in target.headers.values():
        name = value.removeprefix(ENV_PREFIX)
        if value.startswith(ENV_PREFIX) and (unsendable(name, environment) or not environment.get(name)):
            yield name
    variable, is_usual = target.key_variable, not target.api_key_env
    is_needed = not is_usual or provider_of(target.model) not in ELSEWHERE
    has_own = any(name.lower() == _AUTHORIZATION for name in target.headers)
    if variable and is_needed and not has_own and not key_in(variable, environment, is_usual=is_usual):
        yield variable


def _warning(variable: str, what: str, environment: Mapping[str, str]) -> str:
    """Words a warning about one variable."""
    why = unsendable(variable, environment, by="workers")
    if why:
        return f"{what} fail unless the workers may send it: {why}"
    return f"{variable} is not set here: {what} fail unless the workers have it"


def _some(names: Sequence[str]) -> str:
    """Lists the first few of some names.

    >>> _some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")
