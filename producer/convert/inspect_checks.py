"""Makes checks of Inspect's scorers: functions beside the bench that compare as it does, and rubrics."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from producer.convert import inspect_scorers
from producer.convert.data_set import Check, DataSet, any_of, asked_to_choose, filled, literal
from producer.load.problems import Place

VALIDATORS: Final = "inspect_scorers.py"
"""The file of functions beside the bench."""
CHOICE: Final = "choice"
_COMPARED: Final[Mapping[str, str]] = {
    "match": "matches",
    "exact": "is_exact",
    "f1": "f1_score",
    "pattern": "finds",
    "answer": "answers",
    CHOICE: "chooses",
}
"""Scorers that compare texts, with their functions in `inspect_scorers`, which take the same options."""
_FACT, _QA = "model_graded_fact", "model_graded_qa"
_PLACES: Final = {"question": "{{ input }}", "answer": "{{ output }}", "criterion": "{{ rubric }}"}
_IN_JSON: Final = "judges here answer in JSON: write what it says into the prompt of the rubric"
_REDUCERS: Final = frozenset({"majority", "mode"})
"""How most judges decide."""


class _Options(msgspec.Struct):
    """The options of scorers that become checks of other kinds."""

    ignore_case: bool = True
    template: str | None = None
    instructions: str | None = None
    grade_pattern: str | None = None
    include_history: Any = False
    partial_credit: bool = False
    model: Any = None
    reducer: Any = "majority"

    @property
    def judges(self) -> Check:
        """Who grades, where it is named: one model, or several of which most decide."""
        several = self.model if isinstance(self.model, list) else [self.model]
        names = [each for each in several if isinstance(each, str)]
        return {"model": names[0]} if len(names) == 1 else {"models": names} if names else {}


class AskedSample(msgspec.Struct):
    """What scorers are given of a sample."""

    targets: Sequence[str]
    """The right answers."""
    letters: Sequence[str] = ()
    """Those of its choices."""
    has_several: bool = False
    """Whether several choices may be right together."""
    metadata: Mapping[str, Any] = {}
    """Facts, which templates of judges name."""


@dataclass(slots=True)
class Scorers:
    """The scorers of a task as checks."""

    data: DataSet
    place: Place
    _functions: dict[str, str] = field(default_factory=dict)
    """Functions of checks by their code."""
    _named: set[str] = field(default_factory=set)
    """Metadata that templates of judges name."""

    @property
    def functions(self) -> dict[str, Any]:
        """The key of the bench for the functions of its checks, whose file is added to it."""
        if not self._functions:
            return {}
        codes = (f"\n\ndef {name}{code}" for code, name in self._functions.items())
        self.data.files[VALIDATORS] = "".join([inspect.getsource(inspect_scorers), *codes])
        return {"validators_file": VALIDATORS}

    def check(self, name: str, options: Mapping[str, Any], asked: AskedSample) -> Check | None:
        """Returns a scorer as a check; None where it has no counterpart, which is listed, or never fails."""
        if name in _COMPARED:
            return self._compared(name, options, asked)
        if name in {_FACT, _QA, "includes"}:
            if not any(asked.targets):
                return None
            given = msgspec.convert(
                {key: each for key, each in options.items() if each is not None}, _Options
            )
            if name == "includes":
                case = {"ignore_case": True} if given.ignore_case else {}
                return any_of([{"contains": literal(each), **case} for each in asked.targets], name)
            return self._graded(name, given, asked)
        self.data.leave(self.place, f"scorer {name}", "it is code of the task: write it as a check")
        return None

    def _compared(self, name: str, options: Mapping[str, Any], asked: AskedSample) -> Check | None:
        """The check of a function."""
        function = _COMPARED[name]
        known = inspect.signature(getattr(inspect_scorers, function)).parameters
        kept = {key: value for key, value in options.items() if key in known and value is not None}
        for key in options.keys() - kept.keys():
            if options[key] is not None:
                self.data.leave(self.place, f"{key} of {name}", "it is code: write the check")
        given = [f"{key}={value!r}" for key, value in sorted(kept.items())]
        if name == CHOICE:
            given = ['context["vars"]["letters"]', *(["several=True"] if asked.has_several else [])]
        call = ", ".join(["output", 'context["vars"]["target"]', *given])
        code = f"(output: str, context: dict) -> float:\n    return {function}({call})\n"
        taken = sum(each == name or each.startswith(f"{name}_") for each in self._functions.values())
        called = self._functions.setdefault(code, f"{name}_{taken + 1}" if taken else name)
        return {"python": called, "name": name, **({"at_least": 0} if name == "f1" else {})}

    def variables(self, checks: Sequence[Check], asked: AskedSample) -> dict[str, Any]:
        """The variables that functions and prompts for judges read."""
        facts = {key: asked.metadata[key] for key in sorted(self._named & asked.metadata.keys())}
        if not any("python" in each for each in checks):
            return facts
        return {
            **facts,
            "target": list(asked.targets),
            **({"letters": list(asked.letters)} if asked.letters else {}),
        }

    def _graded(self, name: str, given: _Options, asked: AskedSample) -> Check:
        """The check of a scorer that asks judges."""
        for key in ("instructions", "grade_pattern"):
            if getattr(given, key):
                self.data.leave(self.place, f"{key} of {name}", _IN_JSON)
        if given.include_history:
            self.data.leave(self.place, f"include_history of {name}", "judges see the question alone")
        if isinstance(given.model, list) and given.reducer not in _REDUCERS:
            self.data.leave(self.place, f"reducer {given.reducer} of {name}", "most judges decide")
        target = ", ".join(asked.targets) if given.template else None
        if given.template is None and name == _FACT and not given.partial_credit:
            return any_of([{"factuality": literal(each), **given.judges} for each in asked.targets], name)
        choices = {"correct": 1, **({"partial": 0.5} if given.partial_credit else {}), "incorrect": 0}
        if target is None:
            said = "The output says what this expert answer says, or meets this criterion: "
            rubrics = [{"rubric": literal(f"{said}{each}")} for each in asked.targets]
        else:
            rubrics = [
                {"rubric": literal(target), "prompt": self._prompt(given.template or "", choices, name)}
            ]
        return any_of([{**each, "choices": choices, **given.judges} for each in rubrics], name)

    def _prompt(self, template: str, choices: Mapping[str, Any], name: str) -> str:
        """The prompt for judges that is written in a template."""
        answer = asked_to_choose(choices)

        def placed(key: str) -> str | None:
            """What stands in the place of a field."""
            if key == "instructions" or key in _PLACES:
                return answer if key == "instructions" else _PLACES[key]
            if not key.isidentifier():
                self.data.leave(self.place, f"{{{key}}} in the template of {name}", "fields are names")
                return None
            self._named.add(key)
            return f"{{{{ vars.{key} }}}}"

        text = filled(template, placed, escaped=str)
        return text if answer in text else f"{text.rstrip()}\n\n{answer}"
