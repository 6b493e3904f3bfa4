"""Translates graders: judges by name, with options of their own, or code that grades."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from producer.convert.promptfoo.providers import Leave, model_name, script_of, to_model
from producer.convert.promptfoo.suite import Provider
from producer.convert.promptfoo.written import WrittenGrader, WrittenProvider, mapping, read
from producer.load.problems import Place
from shared.contracts.call_options import Params
from shared.contracts.case_config import ModelConfig

_USUAL: Final = {"temperature": 0}
"""What judges are asked with by themselves."""


@dataclass(slots=True)
class Graders:
    """The graders of a configuration."""

    taken: Mapping[str, object] = field(default_factory=dict)
    """Models under test, whose names mean something else."""
    configs: dict[str, ModelConfig] = field(default_factory=dict)
    """What is written of judges beside their names."""
    notes: list[str] = field(default_factory=list)
    """Options that mean nothing to promptfoo."""
    params: dict[str, Any] | None = None
    """Options of calls to all of them; None: none is known yet."""

    def name(self, written: Any, use: str, leave: Leave) -> str | None:
        """Returns the name of a judge as a bench has it; None where none is named.

        Args:
            written: the grader; a mapping may have one for each use.
            use: what it is used for, `text` or `embedding`.
            leave: lists what judges do not have.

        Raises:
            WrongInput: no model is like it.
        """
        if isinstance(written, dict):
            own = written.get(use) or (written if read(WrittenGrader, written).id else None)
            if isinstance(own, str) or own is None:
                return self.name(own, use, leave)
            return self._configured(read(WrittenProvider, own), use, leave)
        if not isinstance(written, str) or (use == "embedding" and "embed" not in written):
            return None
        return self._configured(WrittenProvider(id=written), use, leave)

    def _configured(self, written: WrittenProvider, use: str, leave: Leave) -> str | None:
        """The name of a judge that may have options; they are kept beside it."""
        provider = Provider(Place(""), str(written.id), config=mapping(written.config))
        if use == "embedding":
            return model_name(provider.id) if "embed" in provider.id else None
        model = to_model(provider, leave, self.notes.append)
        if isinstance(model, str):
            self._share({}, leave)
            return model
        given = {name: getattr(model, name) for name in model.model_fields_set - {"name", "params"}}
        if script_of(provider.id) is None:
            self._share(model.params.model_dump(exclude_unset=True), leave)
        if not given:
            return model.name
        name = str(written.label or model.name)
        while name in self.taken or self.configs.get(name, None) not in (None, ModelConfig(**given)):
            name += " (judge)"
        is_called = model.named is None and model.http is None and name != model.name
        self.configs[name] = ModelConfig(**{**given, **({"model": model.name} if is_called else {})})
        return name

    def _share(self, params: dict[str, Any], leave: Leave) -> None:
        """Keeps the options of calls to a judge, which all judges share."""
        params = {**_USUAL, **params}
        if self.params not in (None, params):
            leave("options of graders", "all judges of a bench have the same: see judge_params")
            return
        self.params = params

    @property
    def judge_params(self) -> Params | None:
        """What is written of calls to judges; None: nothing."""
        params = {key: each for key, each in (self.params or {}).items() if _USUAL.get(key) != each}
        return Params(**params) if params else None
