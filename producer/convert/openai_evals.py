"""Converts definitions of OpenAI Evals: a registry file with its samples, or samples alone."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from producer.convert.data_set import Check, DataSet, any_of, literal, records_of
from producer.convert.report import Conversion, ForeignFile
from producer.load.problems import InputRow, Place
from producer.load.yaml_text import parse_yaml
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
Args = Mapping[str, Any]


def fits(file: ForeignFile) -> bool:
    """Returns whether a file defines evals, or has samples of some."""
    if file.path.suffix.lower() in {".yaml", ".yml"}:
        return bool(isinstance(file.document, dict) and _definitions(file.document))
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
            _add(data, row, checks=[_match(_texts(row.value["ideal"]), {})])
            data.leave(row.place, "class of the eval", "it stands in the registry: Match is assumed")
        return data.conversion()
    found = _definitions(file.document)
    for name, spec in found.items():
        _add_eval(data, name, spec, [name] if len(found) > 1 else [])
    more = {"validators_file": VALIDATORS} if VALIDATORS in data.files else {}
    return data.conversion(name=next(iter(found)).split(".")[0], **more)


def _definitions(document: Mapping[str, Any]) -> dict[str, Any]:
    """The evals of a registry file, without their aliases."""
    return {
        str(name): spec
        for name, spec in document.items()
        if isinstance(spec, dict) and str(spec.get("class", "")).startswith("evals.")
    }


def _add_eval(data: DataSet, name: str, spec: Any, tags: Sequence[str]) -> None:
    """Adds the cases of one eval."""
    place, args = data.file.place.at(name), _mapping(spec.get("args"))
    kind = str(spec["class"]).rsplit(":", 1)[-1]
    try:
        make = _graded(data, args, place) if kind == GRADED else _KINDS.get(kind)
    except WrongInput as error:
        data.leave(place, f"{kind} of {name}", error.what)
        return
    if make is None or "samples_jsonl" not in args:
        data.leave(place, f"{kind} of {name}", "it is code: write its checks")
        return
    if kind == "JsonMatch":
        data.leave(place, "order of lists in JSON", "`json_equals` does not look at it")
    shots = _few_shots(data, args, place)
    for row in _samples(data, str(args["samples_jsonl"]), place):
        if "input" not in row.value or ("ideal" not in row.value and kind != GRADED):
            raise row.place.error("no sample", 'a sample has "input" and "ideal"')
        values = {**row.value, **_mapping(args.get("modelgraded_spec_args"))}
        ideal = _texts(values.get("ideal", ""))
        variables = {key: value for key, value in values.items() if kind == GRADED and key != "input"}
        variables |= {"ideal": ideal} if kind == "FuzzyMatch" else {}
        try:
            check = make(ideal, args)
        except ValueError:
            raise row.place.at("ideal").error("not JSON", "JsonMatch compares with JSON") from None
        _add(data, row, shots, checks=[check], tags=tags, vars=variables)
    if kind == "FuzzyMatch":
        data.files[VALIDATORS] = FUZZY_MATCH


def _samples(data: DataSet, written: str, place: Place) -> list[InputRow]:
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


def _few_shots(data: DataSet, args: Args, place: Place) -> list[Any]:
    """The messages of examples that go before the question."""
    number = args.get("num_few_shot")
    if not isinstance(number, int) or number < 1:
        return []
    rows = _samples(data, str(args.get("few_shot_jsonl", "")), place)[:number]
    return [message for row in rows for message in row.value.get("sample", ())]


def _add(data: DataSet, row: InputRow, shots: Sequence[Any] = (), **given: Any) -> None:
    """Adds the case of a sample."""
    written = row.value["input"]
    if isinstance(written, list) and all(isinstance(each, dict) for each in written):
        messages = [*written[:-1], *shots, *written[-1:]]
        if messages and messages[-1].get("role") == "system":
            messages[-1] = {**messages[-1], "role": "user"}
            data.leave(row.place, "conversation that ends with a system message", "it is the user's here")
        known = Message.model_fields.keys()
        given["messages"] = [{key: each[key] for key in each if key in known} for each in messages]
    else:
        given["input"] = str(written)
    data.add(row.place, **given)


def _mapping(value: Any) -> Args:
    """A mapping of a definition; empty where there is none."""
    return value if isinstance(value, dict) else {}


def _texts(ideal: Any) -> list[str]:
    """The right answers of a sample."""
    return [str(each) for each in (ideal if isinstance(ideal, list) else [ideal])]


def _match(ideal: Sequence[str], _: Args) -> Check:
    """The answer begins with one of the texts."""
    return any_of([{"starts_with": literal(each)} for each in ideal], "Match")


def _includes(ideal: Sequence[str], args: Args) -> Check:
    """One of the texts is in the answer."""
    case = {"ignore_case": True} if args.get("ignore_case") else {}
    return any_of([{"contains": literal(each), **case} for each in ideal], "Includes")


def _json_match(ideal: Sequence[str], _: Args) -> Check:
    """The answer is one of the JSON values."""
    return any_of([{"json_equals": json.loads(each)} for each in ideal], "JsonMatch")


_KINDS: Final[Mapping[str, Callable[[Sequence[str], Args], Check]]] = {
    "Match": _match,
    "Includes": _includes,
    "FuzzyMatch": lambda _ideal, _args: {"python": "fuzzy_match"},
    "JsonMatch": _json_match,
    "JsonValidator": lambda _ideal, _args: {"json": None},
}
"""Classes whose samples have right answers."""


def _graded(data: DataSet, args: Args, place: Place) -> Callable[[Sequence[str], Args], Check]:
    """The check of a specification for judges.

    Raises:
        WrongInput: it has no counterpart.
    """
    name = args.get("modelgraded_spec")
    if name == "fact":
        return lambda ideal, _: any_of([{"factuality": literal(each)} for each in ideal], "fact")
    if name == "closedqa":
        return lambda _ideal, _args: {"closed_qa": "{{ criteria }}"}
    spec = name if isinstance(name, dict) else _specification(data, str(name))
    scores = _scores(spec)
    if scores is None or not isinstance(spec.get("prompt"), str) or args.get("multicomp_n"):
        raise WrongInput("without scores of its choices it gives no verdict, only counts")
    least, most = min(scores.values()), max(scores.values())
    if least < 0 or most > 1:
        scores = {each: (value - least) / (most - least) for each, value in scores.items()}
        data.leave(place, f"scores of {name}", f"they are scaled from {least:g}-{most:g} to 0-1")
    listed = ", ".join(map(json.dumps, scores))
    answer = f'Answer with one JSON object: {{"reason": "…", "choice": one of {listed}}}.'
    prompt = _FIELD.sub(lambda found: _placed(found[1]), spec["prompt"])
    check = {
        "rubric": name if isinstance(name, str) else "graded",
        "prompt": f"{prompt.rstrip()}\n\n{answer}",
        "choices": scores,
    }
    return lambda _ideal, _args: check


def _scores(spec: Mapping[str, Any]) -> dict[str, float] | None:
    """The scores of choices; None where there are none that differ."""
    scores = spec.get("choice_scores")
    if scores == "from_strings":
        scores = {each: each for each in spec.get("choice_strings") or ()}
    try:
        found = {str(each): float(value) for each, value in _mapping(scores).items()}
    except (TypeError, ValueError):
        return None
    return found if len(set(found.values())) > 1 else None


def _placed(name: str) -> str:
    """A field of a prompt for judges, as rubrics have it."""
    return f"{{{{ {_PLACES.get(name, f'vars.{name}')} }}}}"


def _specification(data: DataSet, name: str) -> Any:
    """Reads a specification of the registry.

    Raises:
        WrongInput: there is none.
    """
    folder = data.file.path.parent
    if re.fullmatch(r"[\w-]+", name):
        for path in (folder / f"{name}.yaml", folder.parent / "modelgraded" / f"{name}.yaml"):
            if path.is_file() and path.parent.name in {folder.name, "modelgraded"}:
                found = parse_yaml(ForeignFile(path, folder).text)
                if isinstance(found, dict):
                    return found
    raise WrongInput(f"there is no modelgraded/{name}.yaml")
