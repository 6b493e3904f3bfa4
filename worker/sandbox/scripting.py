"""Runs JavaScript in a locked child: each call in an interpreter of its own, which is gone before the next.

An interpreter has no files, no network and no modules; QuickJS bounds its memory and its stack, and the
deadline of the request its time. It is made while nobody waits for it, before the request that it is for.

Runs in an isolated interpreter beside zygote.py; the standard library and QuickJS only.
"""

import re
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any, NoReturn

from worker.sandbox import protocol, serving

MEMORY_BYTES = 32 << 20
STACK_BYTES = 256 << 10
MODULE = "_quickjs"
CALL, LOAD, RESULT = "call", "load", "result"
"""Steps of a script: run it, only compile it, ask for what a promise of it was settled with."""
PARSE = "at parse (native)"
"""The frame of `JSON.parse`; that before it is a place in the JSON."""
NO_MEMORY = "InternalError: out of memory"
_LINE = re.compile(r"<input>:(\d+)")
"""The place in the innermost function; only code of the user's has lines that are told."""

PRELUDE = r"""(function (evaluate) {
const {parse, stringify} = JSON, most = 1000000;
let settled, failed;
globalThis.console = {log() {}, info() {}, warn() {}, error() {}, debug() {}};
const made = body => evaluate("(function (output, context) {" + body + "\n})");
const compiles = body => { try { made(body); return true; } catch { return false; } };
function bodyOf(code) {
  code = code.trimEnd();
  if (code.includes("\n")) return code;
  code = code.trim().replace(/;+\s*$/, "");
  if (!/^(const|let|var)\s/.test(code)) return "return " + code;
  for (let at = code.lastIndexOf(";"); at > 0; at = code.lastIndexOf(";", at - 1)) {
    const before = code.slice(0, at + 1), whole = before + " return " + code.slice(at + 1);
    if (compiles(before) && compiles(whole)) return whole;
  }
  return code;
}
function moduleOf(code) {
  const names = [];
  code = code.replace(/^export\s+default\s+/gm, "module.exports.default = ").replace(
    /^export\s+((?:async\s+)?function\s*\*?|class|const|let|var)\s+([\w$]+)/gm,
    (_, word, name) => { names.push(name); return word + " " + name; });
  const exports = names.map(name => `module.exports[${stringify(name)}] = ${name};`).join("");
  return evaluate("(function (module, exports, require) {" + code + "\n" + exports + "})");
}
function exported(code, name) {
  const module = {exports: {}};
  moduleOf(code)(module, module.exports, asked => { throw `there is no module ${asked} in the sandbox`; });
  const found = name && Object.hasOwn(module.exports, name) ? module.exports[name] : module.exports;
  if (typeof found === "function" && (!name || found !== module.exports)) return found;
  if (!name && found && typeof found.default === "function") return found.default;
  throw name ? `it exports no function ${name}` : "it exports no function: write module.exports = …";
}
function described(value) {
  const text = `${typeof value} ${stringify(value)}`;
  if (text.length > most) throw `it returned ${text.length} characters as JSON, at most ${most} are read`;
  return text;
}
return function (step, code, request) {
  if (step === "load") return request ? (moduleOf(code), "") : (made(bodyOf(code)), "");
  if (step === "call") {
    const {output, context, file, name} = parse(request);
    const given = (file ? exported(code, name) : made(bodyOf(code)))(output, context);
    const isPromise = given !== null && typeof given === "object" && typeof given.then === "function";
    if (!isPromise) return described(given);
    given.then(value => { settled = {value}; }, error => { failed = {error}; });
    return "";
  }
  if (failed) throw failed.error;
  if (!settled) throw "its promise was never settled";
  return described(settled.value);
};
})(eval)"""
"""Makes the function that runs a script by promptfoo's rules: one line is an expression, or declarations and
an expression; several lines have a `return` of their own. It takes what it needs before the script runs."""


def load(path: str) -> Any:
    """Imports QuickJS from its file; before the lock, which lets no file be opened."""
    spec = spec_from_loader(MODULE, ExtensionFileLoader(MODULE, path))
    assert spec is not None  # noqa: S101 - there is one for each loader
    engine = module_from_spec(spec)
    assert spec.loader is not None  # noqa: S101 - it was given
    spec.loader.exec_module(engine)
    return engine


def serve_scripts(engine: Any) -> NoReturn:
    """Runs one script after the other."""
    while True:
        context = engine.Context()
        context.set_memory_limit(MEMORY_BYTES)
        context.set_max_stack_size(STACK_BYTES)
        step = context.eval(PRELUDE)
        word, what, code, request = serving.receive()
        serving.send(serving.framed(word, *_answer(context, step, what, code, request)))


def _answer(
    context: Any, step: Callable[..., str], what: bytes, code: str, request: str
) -> tuple[bytes, str]:
    """Runs or compiles a script."""
    try:
        if what == protocol.LOAD:
            return protocol.DONE, step(LOAD, code, request)
        found = step(CALL, code, request)
        if not found:
            while context.execute_pending_job():
                pass
            found = step(RESULT, "", "")
    except BaseException as error:  # noqa: BLE001 - whatever it throws is an answer
        return failure(str(error), len(code.splitlines()))
    return protocol.VALUE, found


def failure(text: str, lines: int) -> tuple[bytes, str]:
    r"""Makes an answer of what a script has thrown: its message and the line.

    >>> failure("TypeError: no\n    at f (<input>:2:8)\n    at <anonymous> (<input>:9:1)\n", 2)
    (b'x', 'TypeError: no (line 2)')
    """
    message, _, trace = text.partition("\n")
    if message.startswith(NO_MEMORY):
        return protocol.MEMORY, ""
    of_json, is_json, of_code = trace.partition(PARSE)
    place = _LINE.search(of_code if is_json else of_json)
    where = f" (line {min(int(place[1]), lines)})" if place else ""
    return protocol.RAISED, message[: serving.MAX_SAID_CHARS] + where
