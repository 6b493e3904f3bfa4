"""Takes over programs that answer or write prompts: a file beside the bench runs them as promptfoo does."""

import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from producer.convert.promptfoo.named_files import FILE
from shared.contracts.case_config import BenchConfig

EXEC: Final = "exec:"
NAME: Final = "promptfoo_programs.py"
"""The file that runs them."""
TEXT: Final = '''"""Runs programs that answer or write prompts, converted from promptfoo."""

import json
import subprocess


def call_api(prompt, options, context):
    """Returns what a program prints that is given the prompt, its options and its context."""
    return _printed(options["config"]["command"], prompt, json.dumps(options), json.dumps(context))


def create_prompt(context):
    """Returns the prompt that a program prints which is given its variables."""
    return _printed(context["config"]["command"], json.dumps(context))


def _printed(command, *arguments):
    """Runs a program to its end."""
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    printed = done.stdout.strip()
    if done.returncode or (done.stderr.strip() and not printed):
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return printed
'''


def command_of(written: str) -> list[str] | None:
    """Returns the command of a program; None of what is none, such as a file with a function.

    >>> command_of("exec: python chain.py 'a b'"), command_of("file://write.py"), command_of("./ask.sh")
    (['python', 'chain.py', 'a b'], ['python3', 'write.py'], ['./ask.sh'])
    >>> command_of("openai:gpt-4o"), command_of("file://write.py:ask"), command_of("write.js")
    (None, None, None)
    """
    if written.startswith(EXEC):
        return shlex.split(written.removeprefix(EXEC))
    path = written.removeprefix(FILE)
    match PurePath(path).suffix.lower():
        case ".py":
            return ["python3", path]
        case ".sh" | ".bash" | ".pl" | ".rb":
            return [path if "/" in path else f"./{path}"]
        case _:
            return None


def has_programs(bench: BenchConfig) -> bool:
    """Returns whether a bench runs programs."""
    code = (*bench.configured.values(), *(bench.prompts or ()))
    return any(each.named is not None and each.named.file == NAME for each in code)


def program(command: list[str], function: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what runs a program, with the keys of a model or a prompt."""
    return {"python": f"{NAME}:{function}", "config": {**config, "command": command}}
