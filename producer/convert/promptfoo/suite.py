"""What a promptfoo configuration says once all files are read: providers, prompts, tests, assertions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from producer.convert.report import ForeignFile
from producer.load.problems import Place

Vars = Mapping[str, Any]
_NAME_CHARS: Final = 80


def is_meant(written: str, name: str) -> bool:
    """Returns whether a name is meant: by itself, by what stands before a colon, or by a pattern.

    >>> is_meant("openai:gpt-4o", "openai:gpt-4o"), is_meant("openai", "openai:gpt-4o"), is_meant("o*", "a")
    (True, True, False)
    """
    return name == written or name.startswith(
        (f"{written}:", written[:-1]) if written.endswith("*") else f"{written}:"
    )


@dataclass(frozen=True, slots=True)
class Provider:
    """Something that answers."""

    place: Place
    """Where it is written."""
    id: str
    """Its kind and model, such as `openai:chat:gpt-4o`."""
    label: str | None = None
    """What people call it."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Its options."""
    prompts: Sequence[str] | None = None
    """Labels of the prompts that it is sent; None: all."""
    delay_ms: float = 0
    """Time between two calls."""
    transform: Any = None
    """Code that changes its answers."""

    def is_like(self, other: "Provider") -> bool:
        """Returns whether both are the same model with the same options; a bare name means any options."""
        is_bare = not self.config and self.label is None
        return self.id == other.id and (is_bare or (self.config, self.label) == (other.config, other.label))

    def is_called(self, name: str) -> bool:
        """Returns whether a name in a list of providers means it."""
        return is_meant(name, self.id) or (self.label is not None and is_meant(name, self.label))


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt: a text, or code that writes it."""

    place: Place
    """Where it is written."""
    raw: str
    """The template; of code, its path."""
    label: str | None = None
    """What people call it; None: it has no name of its own."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options of calls."""
    is_code: bool = False
    """Whether a program writes it."""
    file: str = ""
    """Where its text is from."""

    def is_called(self, name: str) -> bool:
        """Returns whether a name in a list of prompts means it."""
        label = self.label or (f"{self.file}: {self.raw}" if self.file else self.raw)
        return is_meant(name.removeprefix("file://") if self.file else name, label)


@dataclass(frozen=True, slots=True)
class Assertion:
    """What an answer has to be."""

    place: Place
    """Where it is written."""
    type: str
    """Its kind, `not-` included."""
    value: Any = None
    """What it compares with; files are read, but for code."""
    threshold: float | None = None
    """From which score it passes."""
    weight: float | None = None
    """How much it counts."""
    metric: str | None = None
    """What its score is called."""
    provider: Any = None
    """Who grades."""
    rubric_prompt: Any = None
    """How the grader is asked."""
    transform: Any = None
    """Code that changes the answer before."""
    context_transform: Any = None
    """Code that finds the context in the answer."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options of its kind."""
    inner: "Sequence[Assertion]" = ()
    """Of a set."""


@dataclass(frozen=True, slots=True)
class Test:
    """One test, or the defaults of all."""

    place: Place
    """Where it is written."""
    description: str | None = None
    """What people call it."""
    vars: Vars = field(default_factory=dict)
    """Values of the variables of prompts."""
    assertions: Sequence[Assertion] = ()
    """What answers have to be."""
    threshold: float | None = None
    """From which mean score it passes; None: each assertion must."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """How prompts are made, answers changed and graded."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Facts."""
    providers: Sequence[str] | None = None
    """Who is asked; None: all."""
    provider: Provider | None = None
    """Who is asked in the place of all; None: nobody is."""
    prompts: Sequence[str] | None = None
    """What is sent; None: all."""
    output: Any = None
    """A recorded answer; None: providers are asked."""
    code: str | None = None
    """The program that writes tests in its place, which is given the options; None: it is one."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A whole configuration."""

    place: Place
    """Its file."""
    description: str | None
    """What it is for."""
    providers: Sequence[Provider]
    """Who is asked."""
    prompts: Sequence[PromptTemplate]
    """What is sent."""
    tests: Sequence[Test]
    """The tests, with those of scenarios."""
    default: Test
    """What all tests have."""
    env: Mapping[str, str]
    """Variables of the environment that it sets."""
    options: Mapping[str, Any]
    """How it is run."""
    filters: Mapping[str, Any]
    """Filters of templates that are code."""
    notes: Sequence[str] = ()
    """What is not taken over because it changes neither prompts nor verdicts."""

    def described(self, name: str) -> str:
        """Returns what it says of itself beside its name."""
        description = (self.description or "").strip()
        return "" if description == name else description


def bench_name(suite: Suite, file: ForeignFile) -> str:
    """Returns what the bench is called."""
    description = (suite.description or "").strip()
    if description and "\n" not in description and len(description) <= _NAME_CHARS:
        return description
    folder = file.path.resolve().parent.name
    return folder if file.path.stem.startswith("promptfooconfig") and folder else file.path.stem
