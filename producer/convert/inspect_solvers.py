"""Translates Inspect's solvers: what they add to a question, and the options of calls."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from producer.convert.data_set import DataSet, filled, literal
from producer.convert.inspect_checks import AskedSample
from producer.load.problems import Place
from shared.contracts.prompts import Prompt
from shared.templates.template_texts import is_template

CHOOSE: Final = "Answer with one of these choices. Your last line is ANSWER: LETTER, one of {letters}."
CHOOSE_SEVERAL: Final = (
    "Answer with all right choices. Your last line is ANSWER: LETTERS, one or more of {letters}."
)
"""What is added to a question with choices, as the solver `multiple_choice` does."""
STEPS: Final = " Think step by step before answering."
"""What is added to it where the solver asks for reasons."""
INPUT: Final = "{{ input }}"
_LETTERS: Final = 26
_PARAMS: Final[Mapping[str, str]] = {
    "stop_seqs": "stop",
    **{
        name: name
        for name in (
            *("temperature", "max_tokens", "top_p", "seed", "presence_penalty", "frequency_penalty"),
            *("reasoning_effort", "logprobs", "extra_body"),
        )
    },
}
"""Options of calls, with their names in benches."""
_OF_RUNS: Final = frozenset(
    {
        *("max_connections", "max_retries", "timeout", "attempt_timeout", "adaptive_connections", "batch"),
        *("cache", "cache_prompt", "stream_idle_timeout", "max_tool_output", "internal_tools"),
    }
)
"""Options that change no answer."""
_FILE: Final = re.compile(r"\S+\.\w{1,4}")


def letters_of(choices: Sequence[str]) -> list[str]:
    """The letters of choices; after the last one they are numbered.

    >>> letters_of(["x"] * 28)[-3:]
    ['Z', '1', '2']
    """
    return [chr(ord("A") + at) if at < _LETTERS else str(at - _LETTERS + 1) for at in range(len(choices))]


class _Templated(msgspec.Struct):
    """The arguments of solvers that write."""

    template: str | None = None


class _Choosing(_Templated):
    """The arguments of `multiple_choice`."""

    multiple_correct: bool | None = None
    cot: bool = False
    max_tokens: int | None = None


@dataclass(slots=True)
class Solvers:
    """How the samples of a task are asked."""

    data: DataSet
    place: Place
    metadata: Sequence[Mapping[str, Any]]
    """Of the samples, which templates name."""
    _system: list[str] = field(default_factory=list)
    _user: str = INPUT
    _choosing: _Choosing = field(default_factory=_Choosing)
    _named: set[str] = field(default_factory=set)
    """Metadata that templates name."""

    def read(self, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Takes the solvers, by name with their arguments."""
        for name, params in steps:
            template = msgspec.convert(params, _Templated).template or ""
            if _FILE.fullmatch(template):
                self._leave(f"template {template} of {name}", "it is a file: write its text into the prompt")
                continue
            match name:
                case "system_message" if template:
                    if self._system:
                        self._leave(f"second {name}", "it is joined to the first")
                    self._system.append(self._filled(template, params, {}))
                case "prompt_template" if "{prompt}" in template:
                    self._user = self._filled(template, params, {"prompt": self._user})
                case "multiple_choice":
                    self._choosing = msgspec.convert(params, _Choosing)
                    if self._choosing.max_tokens:
                        self._leave(f"max_tokens of {name}", "write it as max_tokens under `params`")
                case "generate":
                    pass
                case _:
                    self._leave(f"solver {name}", "it is code: write what it adds into the prompt")

    def _leave(self, what: str, reason: str) -> None:
        self.data.leave(self.place, what, reason)

    def _filled(self, template: str, params: Mapping[str, Any], places: Mapping[str, str]) -> str:
        """A template with its arguments; metadata are variables of the cases."""

        def placed(name: str) -> str | None:
            """What stands in the place of a field; one that is not known stays."""
            if name in places:
                return places[name]
            if name in params and name != "template":
                return literal(str(params[name]))
            if any(name in each for each in self.metadata):
                self._named.add(name)
                return f"{{{{ {name} }}}}"
            if not name.isidentifier():
                self._leave(f"field {{{name}}} of a template", "fields are names: write its text")
            return None

        return filled(template, placed)

    @property
    def is_templated(self) -> bool:
        """Whether the question stands in a template."""
        return self._user != INPUT

    @property
    def prompts(self) -> dict[str, Any]:
        """The keys of the bench for what is sent."""
        system = "\n\n".join(self._system)
        if is_template(system):
            return {"prompts": [Prompt(system=system, user=self._user)]}
        return {"prompts": [Prompt(user=self._user)], **({"system_prompt": system} if system else {})}

    def variables(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """The variables of a sample that templates name; what it does not have stays a field."""
        return {name: metadata.get(name, f"{{{name}}}") for name in sorted(self._named)}

    def has_several(self, targets: Sequence[str]) -> bool:
        """Whether several choices may be right together."""
        said = self._choosing.multiple_correct
        return len(targets) > 1 if said is None else said

    def listed(self, question: str, choices: Sequence[str], asked: AskedSample) -> str:
        """A question with its choices."""
        if not choices:
            return question
        named = zip(asked.letters, choices, strict=True)
        places = {
            "question": question,
            "choices": "\n".join(f"{letter}) {text}" for letter, text in named),
            "letters": ", ".join(asked.letters),
        }
        own = (CHOOSE_SEVERAL if asked.has_several else CHOOSE) + (STEPS if self._choosing.cot else "")
        template = self._choosing.template or f"{{question}}\n\n{{choices}}\n\n{own}"
        return filled(template, places.get, str)

    def params(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The options of calls; without a temperature, none is sent."""
        given: dict[str, Any] = {"temperature": None}
        for key, value in config.items():
            if value is not None and key in _PARAMS:
                given[_PARAMS[key]] = value
            elif value is not None and key not in _OF_RUNS:
                self._leave(f"{key} of calls", "models have no such option: see `params`")
        return given
