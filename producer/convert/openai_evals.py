"""Converts definitions of OpenAI Evals: a registry file with its samples, or samples alone."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from producer.convert.data_set import Check, DataSet, any_of, asked_to_choose, literal, records_of, typed
from producer.convert.report import Conversion, ForeignFile
from producer.convert.yaml_comments import comments_above
from producer.load.problems import InputRow, Place
from shared.contracts.prompts import Message
from shared.errors import WrongInput

VALIDATORS: Final = "fuzzy_match.py"
FUZZY_MATCH: Final = '''"""The fuzzy match of OpenAI Evals."""

import re
import string


def fuzzy_match(output: str, context: dict) -> bool:
    ideals, said = context["vars"]["ideal"], plain(output)
    return any(
        ideal in said or said in ideal if ideal and said else ideal == said for ideal in map(plain, ideals)
    )


def plain(text: str) -> str:
    text = "".join(each for each in text.split("\\n")[0].lower() if each not in string.punctuation)
    return " ".join(re.sub(r"\\b(a|an|the)\\b", " ", text).split())
'''
"""Compares without case, punctuation and articles, in both directions."""
_FIELD: Final = re.compile(r"\{(\w+)\}")
_PLACES: Final = {"completion": "output", "input": "input"}
"""What a prompt for judges calls the answer and the question."""
GRADED: Final = "ModelBasedClassify"
"""The class of evals whose answers a judge classifies."""


class _Args(msgspec.Struct):
    """What an eval is given."""

    samples_jsonl: str = ""
    num_few_shot: int = 0
    few_shot_jsonl: str = ""
    ignore_case: bool = False
    modelgraded_spec: str | dict[str, Any] = ""
    modelgraded_spec_args: dict[str, Any] = {}
    multicomp_n: Any = None


class _Eval(msgspec.Struct):
    """An eval; an alias of one has no class."""

    path: str = msgspec.field(default="", name="class")
    args: _Args | None = None

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self.path.rsplit(":", 1)[-1]


class _Described(msgspec.Struct):
    """An entry of a registry."""

    description: str = ""


class _Specification(msgspec.Struct):
    """What a judge is asked, and what its choices are worth."""

    prompt: str
    choice_strings: str | list[str] = ""
    choice_scores: str | dict[str, float] | None = None

    @property
    def scores(self) -> dict[str, float]:
        """The scores of choices; those that do not differ are none."""
        found = self.choice_scores
        if found == "from_strings" and all(each.isdecimal() for each in self.choice_strings):
            found = {each: float(each) for each in self.choice_strings}
        return found if isinstance(found, dict) and len(set(found.values())) > 1 else {}


class _Sample(msgspec.Struct):
    """A question with its right answers."""

    input: str | list[dict[str, Any]]
    ideal: Any = None

    @property
    def ideals(self) -> list[str]:
        """The right answers."""
        return [str(each) for each in (self.ideal if isinstance(self.ideal, list) else [self.ideal])]


class _Shot(msgspec.Struct):
    """An example that goes before a question."""

    sample: list[dict[str, Any]]


MakeCheck = Callable[[Sequence[str], _Args], Check]


def fits(file: ForeignFile) -> bool:
    """Returns whether a file defines evals, or has samples of some."""
    if file.path.suffix.lower() in {".yaml", ".yml"}:
        return isinstance(file.document, dict) and bool(_evals(file))
    records = records_of(file)
    return bool(records) and {"input", "ideal"} <= records[0].value.keys()


def convert(file: ForeignFile) -> Conversion:
    """Translates the evals of a file.

    Raises:
        InputError: samples are missing or broken, or no eval has a counterpart.
    """
    data = DataSet(file)
    if file.path.suffix.lower() not in {".yaml", ".yml"}:
        for row in records_of(file):
            sample = typed(row, _Sample)
            _add(data, row.place, sample, checks=[_match(sample.ideals, _Args())])
        data.comments.append("the class of the eval stands in the registry: Match is assumed")
        return data.conversion()
    found = _evals(file)
    if not found:
        raise file.place.error("no evals in it", "an eval is a mapping with a class that begins with evals.")
    for name, each in found.items():
        _add_eval(data, name, each, [name] if len(found) > 1 else [])
    more: dict[str, Any] = {"validators_file": VALIDATORS} if VALIDATORS in data.files else {}
    entries = [each for each in file.mapping.values() if isinstance(each, dict)]
    described = (typed(InputRow(file.place, each), _Described).description for each in entries)
    description = next(filter(None, described), "")
    more |= {"description": description} if description else {}
    data.comments += [each for texts in comments_above(file.text).values() for each in texts]
    return data.conversion(name=next(iter(found)).split(".")[0], **more)


def _evals(file: ForeignFile) -> dict[str, _Eval]:
    """The evals of a registry file, without their aliases."""
    found = dict[str, _Eval]()
    for name, written in file.mapping.items():
        if isinstance(written, dict) and "class" in written:
            each = typed(InputRow(file.place.at(name), written), _Eval)
            found |= {name: each} if each.path.startswith("evals.") else {}
    return found


def _add_eval(data: DataSet, name: str, spec: _Eval, tags: Sequence[str]) -> None:
    """Adds the cases of one eval."""
    place, args, kind = data.file.place.at(name), spec.args or _Args(), spec.kind
    try:
        make = _graded(data, args, place) if kind == GRADED else _KINDS.get(kind)
    except WrongInput as error:
        data.leave(place, f"{kind} of {name}", error.what)
        return
    if make is None or not args.samples_jsonl:
        data.leave(place, f"{kind} of {name}", "it is code: write its checks")
        return
    if kind == "JsonMatch":
        data.leave(place, "order of lists in JSON", "`json_equals` does not look at it")
    shots = _samples(data, args.few_shot_jsonl, place)[: args.num_few_shot] if args.num_few_shot > 0 else []
    examples = [message for row in shots for message in typed(row, _Shot).sample]
    for row in _samples(data, args.samples_jsonl, place):
        sample = typed(row, _Sample)
        if sample.ideal is None and kind != GRADED:
            raise row.place.error("a sample without its right answer", 'name it "ideal"')
        variables = {"ideal": sample.ideals} if kind == "FuzzyMatch" else {}
        if kind == GRADED:
            variables = {key: each for key, each in row.value.items() if key != "input"}
            variables |= args.modelgraded_spec_args
        try:
            check = make(sample.ideals, args)
        except ValueError:
            raise row.place.at("ideal").error("not JSON", "JsonMatch compares with JSON") from None
        _add(data, row.place, sample, examples, checks=[check], tags=tags, vars=variables)
    if kind == "FuzzyMatch":
        data.files[VALIDATORS] = FUZZY_MATCH


def _samples(data: DataSet, written: str, place: Place) -> Sequence[InputRow]:
    """Reads the samples of an eval: beside the file, or in the folder `data` of its registry."""
    folder = data.file.path.parent
    roots = [folder, *([folder.parent / "data"] if folder.name == "evals" else [])]
    if PurePosixPath(written).is_absolute() or ".." in PurePosixPath(written).parts:
        raise place.error(f"{written} is outside of the registry", "name a file in its folder data")
    for root in roots:
        path = root / written
        if path.is_file() and path.resolve().is_relative_to(root.resolve()):
            with path.open("rb") as stream:
                is_pointer = stream.read(20).startswith(b"version https://git")
            if is_pointer:
                raise place.error(f"{path} is a pointer of Git LFS", "git lfs pull")
            return records_of(ForeignFile(path, data.file.folder))
    tried = " and ".join(str(root) for root in roots)
    raise place.error(f"there is no {written}", f"looked in {tried}")


def _add(
    data: DataSet, place: Place, sample: _Sample, examples: Sequence[dict[str, Any]] = (), **given: Any
) -> None:
    """Adds the case of a sample."""
    if isinstance(sample.input, str):
        data.add(place, input=sample.input, **given)
        return
    messages = [*sample.input[:-1], *examples, *sample.input[-1:]]
    if messages and messages[-1].get("role") == "system":
        messages[-1] = {**messages[-1], "role": "user"}
        data.leave(place, "conversation that ends with a system message", "it is the user's here")
    known = Message.model_fields.keys()
    data.add(place, messages=[{key: each[key] for key in each if key in known} for each in messages], **given)


def _match(ideal: Sequence[str], _: _Args) -> Check:
    """The answer begins with one of the texts."""
    return any_of([{"starts_with": literal(each)} for each in ideal], "Match")


def _includes(ideal: Sequence[str], args: _Args) -> Check:
    """One of the texts is in the answer."""
    case = {"ignore_case": True} if args.ignore_case else {}
    return any_of([{"contains": literal(each), **case} for each in ideal], "Includes")


def _json_match(ideal: Sequence[str], _: _Args) -> Check:
    """The answer is one of the JSON values."""
    return any_of([{"json_equals": json.loads(each)} for each in ideal], "JsonMatch")


_KINDS: Final[Mapping[str, MakeCheck]] = {
    "Match": _match,
    "Includes": _includes,
    "FuzzyMatch": lambda _ideal, _args: {"python": "fuzzy_match"},
    "JsonMatch": _json_match,
    "JsonValidator": lambda _ideal, _args: {"json": None},
}
"""Classes whose samples have right answers."""


def _graded(data: DataSet, args: _Args, place: Place) -> MakeCheck:
    """The check of a specification for judges.

    Raises:
        WrongInput: it has no counterpart.
    """
    name = args.modelgraded_spec
    if name == "fact":
        return lambda ideals, _: any_of([{"factuality": literal(each)} for each in ideals], "fact")
    if name == "closedqa":
        return lambda _ideals, _args: {"closed_qa": "{{ criteria }}"}
    try:
        spec = msgspec.convert(_written(data, name) if isinstance(name, str) else name, _Specification)
    except msgspec.MsgspecError as error:
        raise WrongInput(f"its specification cannot be read: {error}") from None
    scores = spec.scores
    if not scores or args.multicomp_n:
        raise WrongInput("without scores of its choices it gives no verdict, only counts")
    least, most = min(scores.values()), max(scores.values())
    if least < 0 or most > 1:
        scores = {each: (value - least) / (most - least) for each, value in scores.items()}
        data.leave(place, f"scores of {name}", f"they are scaled from {least:g}-{most:g} to 0-1")
    asked = _FIELD.sub(lambda found: _placed(found[1]), spec.prompt).rstrip()
    prompt = f"{asked}\n\n{asked_to_choose(scores)}"
    check = {"rubric": name if isinstance(name, str) else "graded", "prompt": prompt, "choices": scores}
    return lambda _ideals, _args: check


def _placed(name: str) -> str:
    """A field of a prompt for judges, as rubrics have it."""
    return f"{{{{ {_PLACES.get(name, f'vars.{name}')} }}}}"


def _written(data: DataSet, name: str) -> Any:
    """Reads a specification of the registry.

    Raises:
        WrongInput: there is none.
    """
    folder = data.file.path.parent
    for beside in (folder, folder.parent / "modelgraded"):
        path = beside / f"{name}.yaml"
        if re.fullmatch(r"[\w-]+", name) and path.is_file():
            document = ForeignFile(path, folder).document
            return document.get(name, document) if isinstance(document, dict) else document
    raise WrongInput(f"there is no modelgraded/{name}.yaml")
