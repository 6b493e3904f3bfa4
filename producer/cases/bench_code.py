"""Reads code beside a bench, and runs what makes prompts and cases at submit; models are run by workers.

Nothing is started before `--allow-code` was found: a bench may come from anybody.
"""

import ast
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final, Self

from producer.cases.bench_files import TextFile, inside
from producer.cases.imported_files import imported_files
from producer.load.problems import InputRow, Place
from producer.text import shown
from shared import plugins
from shared.code.code_file import CALLED_AS_MODEL, CodeFile, digest_of
from shared.code.code_process import CodeFailedError, CodeProcess, Role
from shared.contracts.case_config import BenchConfig, ModelConfig
from shared.contracts.code_config import CaseSource, Code, CodeName

CODE_BYTES: Final = 1 << 20
"""The largest file of code: it is stored with the run."""
LOAD_S: Final = 60.0
"""Time that a file may take to be loaded, with all that it imports."""
PROMPT_S: Final = 30.0
"""Time that one prompt may take to be made."""
CASES_S: Final = 300.0
"""Time that cases may take to be made."""

ReadFile = Callable[[Place, str, int], TextFile]
"""Reads a file that the bench names at a place, of so many bytes at most."""
MakePrompt = Callable[[Mapping[str, Any], Place], Any]
"""Makes a prompt of what functions get beside their `config`; problems are told at the place of the case."""


@dataclass(slots=True)
class BenchCode:
    """The code of one bench.

    Args:
        config: the file of the bench; None: it came over stdin.
        read: reads a file beside it.
    """

    config: Path | None
    read: ReadFile
    _processes: dict[str, CodeProcess] = field(default_factory=dict)
    _broken: dict[str, str] = field(default_factory=dict)
    """Why a process takes no further calls: it would take as long to fail for each case."""

    @classmethod
    def of(
        cls, root: Place, config: BenchConfig, path: Path | None, read: ReadFile, *, is_allowed: bool
    ) -> Self:
        """Prepares to run the code of a bench.

        Args:
            root: the bench.
            config: its content.
            path: its file.
            read: reads a file beside it.
            is_allowed: whether code may run.

        Raises:
            InputError: it has some, which may not.
        """
        sources = [each for each in config.test_cases_file or () if isinstance(each, CaseSource)]
        code = [*config.configured.values(), *(config.prompts or ()), *sources]
        files = list(dict.fromkeys(shown(each.named.file) for each in code if each.named))
        if files and not is_allowed:
            are = "is code" if len(files) == 1 else "are code"
            what = f"{', '.join(files)} {are} beside the bench, which runs only with --allow-code"
            raise root.error(what, "it may do whatever you may do: read it first, then add --allow-code")
        return cls(path, read)

    def file(self, place: Place, code: Code) -> CodeFile:
        """Reads a file of code, which is named.

        Raises:
            InputError: it cannot be read, or is no Python.
        """
        name = _name_of(code)
        found = self.read(place, name.file, CODE_BYTES)
        if name.language == "python":
            try:
                ast.parse(found.text)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                where = Place(found.name, line=getattr(error, "lineno", None) or 1)
                text = getattr(error, "msg", str(error))
                raise where.error(f"not valid Python: {text}", f"python -m py_compile {found.name}") from None
        path, travels = inside(self.config, place, name.file), isinstance(code, ModelConfig)
        imported = imported_files(path, found.text) if travels else {}
        return CodeFile(
            name.language,
            PurePath(name.file).name,
            found.text,
            digest_of(found.text, imported),
            name.function,
            list(code.env),
            str(path.parent),
            code.role if isinstance(code, ModelConfig) else CALLED_AS_MODEL,
            imported,
        )

    def prompt(self, place: Place, code: Code) -> MakePrompt:
        """Returns what makes a prompt.

        Raises:
            InputError: as `file`; or no such plug-in is installed.
        """
        if code.plugin is None:
            call: MakePrompt = partial(self._call, self.file(place, code), code, "prompt", PROMPT_S)
        else:
            try:
                call = partial(_call_plugin, code.plugin, plugins.load("prompts", code.plugin))
            except LookupError as error:
                raise place.error(str(error), "`proctor plugins` lists those that are") from None
        return lambda context, place: call({**context, "config": dict(code.config)}, place)

    def rows(self, place: Place, source: CaseSource) -> Iterator[InputRow]:
        """Yields the cases that code makes, as those of a file.

        Raises:
            InputError: it fails, or makes no list of cases.
        """
        file = self.file(place, source)
        made = self._call(file, source, "cases", CASES_S, source.config, place)
        if not isinstance(made, list):
            raise place.error(f"{file.name} returned {shown(made)}", "return a list of cases: [{…}]")
        for at, each in enumerate(made):
            here = Place(f"{file.name}[{at}]")
            if not isinstance(each, dict):
                raise here.error(f"not an object ({shown(each)})", "a case is an object: input: …")
            if "assert" in each and source.returns == "cases":
                how = f"add returns: promptfoo beside {file.language}"
                raise here.error("assert is a key of promptfoo's tests", how)
            yield InputRow(here, each)

    def _call(  # noqa: PLR0917 - two calls, above
        self, file: CodeFile, code: Code, role: Role, within_s: float, given: Mapping[str, Any], place: Place
    ) -> Any:
        """Calls a function in the process of its file, which is started at the first call."""
        key, hint = json.dumps([role, code.named, file.env]), f"correct {file.name}"
        if key in self._broken:
            raise place.error(self._broken[key], hint)
        try:
            if key not in self._processes:
                beside = inside(self.config, place, _name_of(code).file).parent
                self._processes[key] = CodeProcess(file, role, os.environ, beside=beside)
                self._processes[key].ready.result(LOAD_S)
            return self._processes[key].call([given] if given else []).result(within_s)
        except TimeoutError:
            self._broken[key] = what = f"{file.name} did not return in {within_s:g} s"
            raise place.error(what, hint) from None
        except CodeFailedError as error:
            if error.failure != "raised":
                self._broken[key] = str(error)
            raise place.error(str(error), hint) from None

    def close(self) -> None:
        """Ends the processes of prompts and cases."""
        for each in self._processes.values():
            each.close()
        self._processes.clear()


def _name_of(code: Code) -> CodeName:
    if (name := code.named) is None:
        raise AssertionError("the contract requires a file")
    return name


def _call_plugin(
    name: str, function: Callable[[Mapping[str, Any]], Any], context: Mapping[str, Any], place: Place
) -> Any:
    try:
        return function(context)
    except Exception as error:  # whatever an installed function raises
        what = f"plug-in {name}: {type(error).__name__}: {error}"
        raise place.error(what, "correct its package") from error


def messages_made(made: Any, place: Place) -> list[dict[str, Any]]:
    """Reads what a function made: a text, messages, either as `prompt`, or messages as a JSON text.

    Raises:
        InputError: it is something else.

    >>> messages_made("Hi", Place("a"))
    [{'role': 'user', 'content': 'Hi'}]
    >>> messages_made({"prompt": '[{"role": "user", "content": "Hi"}]'}, Place("a"))
    [{'role': 'user', 'content': 'Hi'}]
    """
    found = made["prompt"] if isinstance(made, dict) and "prompt" in made else made
    if isinstance(found, str):
        found = _messages_in(found) or [{"role": "user", "content": found}]
    if isinstance(found, list) and found and all(isinstance(each, dict) for each in found):
        return found
    raise place.error(f"the prompt's function returned {shown(made)}", "return a text or a list of messages")


def _messages_in(text: str) -> list[Any] | None:
    """Returns the messages that a text is as JSON; None of any other."""
    if not text.lstrip().startswith("[{"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if all(isinstance(each, dict) and "role" in each for each in found) else None
