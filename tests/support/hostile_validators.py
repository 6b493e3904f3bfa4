"""Validators written to break out: to a file, the network, the environment, a process, or the next case.

Each reads its targets from its text (JSON) and returns True only when it got what it wanted. None of them
would pass the static policy; they are run without it, because the sandbox must hold alone.
"""

from typing import Final

HONEST: Final = """
CALLS = []
def honest(output):
    import ast, collections.abc, functools, json, math, re, string
    CALLS.append(output)
    fair = re.search('^ok$', output) and json.loads('[1]') == [1] and math.floor(1.5) == 1
    fair = fair and json.encoder.py_encode_basestring('"') == '"\\\\""' and ast.Name._fields == ('id', 'ctx')
    fair = fair and not isinstance(output, (collections.abc.Mapping, collections.abc.Callable))
    fair = fair and string.Template('$a').substitute(a='b') == 'b' and functools.reduce(max, [1, 2]) == 2
    return bool(fair) and len(CALLS) == 1 and isinstance(output, str) and len(output) == 2
"""
"""Goes with each: what the next case asks, true of `ok` and of nothing else in a process unharmed."""

_HEAD: Final = "import json\ndef v(output):\n    want = json.loads(output)\n"
_KERNEL: Final = """
import ctypes, json, struct, sys
import string
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ARM = ctypes.sizeof(ctypes.c_void_p) == 8 and 'aarch64' in sys.implementation._multiarch
def call(x86, arm, *arguments):
    longs = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return libc.syscall(arm if ARM else x86, *longs) >= 0
def v(output):
    want = json.loads(output)
"""


def _tries(body: str) -> str:
    return _HEAD + "".join(f"    {line}\n" for line in body.strip().splitlines()) + HONEST


def _asks_kernel(body: str) -> str:
    return _KERNEL + "".join(f"    {line}\n" for line in body.strip().splitlines()) + HONEST


FILES: Final = {
    "open": "return open(want['file']).read() == want['secret']",
    "open to write": "open(want['file'], 'w').write('gone')\nreturn True",
    "os.open": "import os\nreturn os.open(want['file'], 0) >= 0",
    "os.stat": "import os\nreturn os.stat(want['file']).st_size > 0",
    "os.listdir": "import os\nreturn bool(os.listdir('/'))",
    "os.path.exists": "import os\nreturn os.path.exists(want['file'])",
    "os.remove": "import os\nos.remove(want['file'])\nreturn True",
    "os.mkdir": "import os\nos.mkdir(want['file'] + '.d')\nreturn True",
    "os.chdir": "import os\nos.chdir('/tmp')\nreturn True",
    "os.readlink of itself": "import os\nreturn bool(os.readlink('/proc/self/exe'))",
    "io.FileIO": "import io\nreturn io.FileIO(want['file']).read() != b''",
    "codecs through json": "return json.codecs.open(want['file']).read() == want['secret']",
    "sys through re": "import re\nreturn re.enum.sys.modules['posix'].open(want['file'], 0) >= 0",
    "sys through collections": "import collections\nreturn bool(collections._sys.modules['os'].listdir('/'))",
    "builtins through print": "return print.__self__.open(want['file']).read() == want['secret']",
    "subclasses": (
        "for each in ().__class__.__base__.__subclasses__():\n"
        "    if each.__name__ == 'FileLoader':\n"
        "        return each('x', want['file']).get_data(want['file']) != b''\n"
        "return False"
    ),
    "eval": "return eval('open(want[\"file\"]).read()', {'want': want}) == want['secret']",
    "a loader": "return bool(__loader__.get_data(want['file']))",
    "import of a file": "import sys\nsys.path.insert(0, want['folder'])\nimport planted\nreturn True",
    "import of what was not loaded": "import sqlite3\nreturn True",
    "mmap module": "import mmap\nreturn mmap.mmap(-1, 4096, prot=7) is not None",
    "temporary file": "import tempfile\nreturn tempfile.TemporaryFile() is not None",
    "descriptors": (
        "import os\nfor n in range(3, 64):\n    try: return bool(os.fstat(n))\n"
        "    except OSError: pass\nreturn False"
    ),
    "a pipe": "import os\nreturn bool(os.pipe())",
}
"""Tries to reach files."""

NETWORK: Final = {
    "TCP": "import socket\nreturn bool(socket.create_connection(('127.0.0.1', want['port']), 1))",
    "a raw _socket": "import _socket\nreturn bool(_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM))",
    "UDP": (
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.sendto(b'x', ('127.0.0.1', want['port']))\nreturn True"
    ),
    "a unix socket": "import socket\nreturn bool(socket.socket(socket.AF_UNIX))",
    "a socket pair": "import socket\nreturn bool(socket.socketpair())",
    "urllib": (
        "import urllib.request\nreturn bool(urllib.request.urlopen('http://127.0.0.1:%d/' % want['port']))"
    ),
    "a name's address": "import socket\nreturn bool(socket.getaddrinfo('localhost', 80))",
}
"""Tries to reach the network."""

PROCESSES: Final = {
    "environment": "import os\nreturn want['secret'] in str(os.environ) or len(os.environ) > 1",
    "environment of the kernel": (
        "import posix\nreturn want['secret'].encode() in str(posix.environ).encode()"
    ),
    "environment of the parent": "return bool(open('/proc/%d/environ' % want['pid']).read())",
    "arguments": "import sys\nreturn want['secret'] in ' '.join(sys.argv + sys.orig_argv)",
    "os.fork": "import os\npid = os.fork()\nif not pid: os._exit(0)\nreturn True",
    "os.system": "import os\nreturn os.system('true') == 0",
    "os.execv": "import os\nos.execv('/bin/true', ['true'])",
    "posix_spawn": "import os\nreturn os.posix_spawn('/bin/true', ['true'], {}) > 0",
    "subprocess": "import subprocess\nreturn bool(subprocess.run(['true']))",
    "a thread": "import _thread\n_thread.start_new_thread(print, ())\nreturn True",
    "kill the worker": "import os\nos.kill(want['pid'], 0)\nreturn True",
    "kill the zygote": "import os\nos.kill(os.getppid(), 9)\nreturn True",
    "kill the group": "import os\nos.killpg(0, 0)\nreturn True",
    "raise a limit": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nreturn True",
    "nice": "import os\nos.nice(1)\nreturn True",
    "an alarm": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 1)\nreturn True",
    "frames": (
        "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\n"
        "return want['secret'] in str(f.f_globals) + str(f.f_locals)"
    ),
    "frames of an exception": (
        "try: 1 / 0\nexcept Exception as e: f = e.__traceback__.tb_frame\n"
        "while f.f_back: f = f.f_back\nreturn f.f_globals['os'].open('/', 0) >= 0"
    ),
    "everything in memory": (
        "import gc\nreturn any(want['secret'] in repr(o) for o in gc.get_objects() if type(o) is bytes)"
    ),
}
"""Tries to reach the environment and other processes."""

KERNEL: Final = {
    "openat": "return call(257, 56, -100, want['file'].encode(), 0)",
    "newfstatat": "return call(262, 79, -100, want['file'].encode(), ctypes.create_string_buffer(256), 0)",
    "socket, TCP": "return call(41, 198, 2, 1, 0)",
    "socket, UDP": "return call(41, 198, 2, 2, 0)",
    "clone": "return call(56, 220, 17, 0, 0, 0, 0)",
    "clone of a thread": "return call(56, 220, 0x10f00, 0, 0, 0, 0)",
    "ptrace attach": "return call(101, 117, 16, want['pid'], 0, 0)",
    "process_vm_readv": (
        "b = ctypes.create_string_buffer(8)\nv = struct.pack('PN', ctypes.addressof(b), 8)\n"
        "return call(310, 270, want['pid'], v, 1, v, 1, 0)"
    ),
    "io_uring": "return call(425, 425, 1, ctypes.create_string_buffer(256))",
    "memfd": "return call(319, 279, b'x', 0)",
    "kill": "return call(62, 129, want['pid'], 0)",
    "tgkill": "return call(234, 131, want['pid'], want['pid'], 0)",
    "pidfd": "return call(434, 434, want['pid'], 0)",
    "execve": "return call(59, 221, b'/bin/true', 0, 0)",
    "bpf": "return call(321, 280, 0, ctypes.create_string_buffer(256), 256)",
    "userfaultfd": "return call(323, 282, 1)",
    "shared memory": "return call(29, 194, 4711, 4096, 0) or ctypes.get_errno() == 2",
    "a namespace": "return call(272, 97, 0x10000000)",
    "mount": "return call(165, 40, b'', b'', b'', 0, 0) or ctypes.get_errno() == 2",
    "prctl": "return call(157, 167, 1, 0, 0, 0, 0)",
    "a keyring": "return call(250, 219, 0, -3, 1)",
    "memory to write and execute": "return call(9, 222, 0, 4096, 7, 0x22, -1, 0)",
    "memory to execute": (
        "m = libc.syscall(222 if ARM else 9, ctypes.c_long(0), ctypes.c_long(4096), ctypes.c_long(3), "
        "ctypes.c_long(0x22), ctypes.c_long(-1), ctypes.c_long(0))\nreturn call(10, 226, m, 4096, 5)"
    ),
    "the x32 way in": "return not ARM and call(0x40000000 + 257, 0, -100, b'/', 0)",
    "a null pointer": "ctypes.string_at(0)\nreturn True",
    "a wild jump": "ctypes.CFUNCTYPE(None)(1)()\nreturn True",
}
"""Asks the kernel outright."""

NEXT_CASE: Final = {
    "re.search replaced": "import re\nre.search = re.compile = lambda *a: True\nreturn False",
    "json.loads replaced": "json.loads = lambda text: 'x'\nreturn False",
    "len replaced": "import builtins\nbuiltins.len = lambda x: 2\nbuiltins.isinstance = print\nreturn False",
    "globals changed": "CALLS.extend('abc')\nglobals()['honest'] = lambda o: True\nreturn False",
    "sys.modules changed": "import sys\nsys.modules['re'] = sys.modules['math'] = json\nreturn False",
    "the harness replaced": (
        "import sys\nf = sys._getframe(1)\nf.f_globals['described'] = lambda value: (b'T', '')\n"
        "f.f_globals['call'] = lambda *a: (b'T', '')\nreturn False"
    ),
    "an answer written ahead": (
        "import os, struct\n"
        "for i in range(50): os.write(1, struct.pack('<I8sc', 9, b'\\0' * 8, b'T'))\nreturn False"
    ),
    "the true word stolen, two answers": (
        "import os, struct, sys\nf = sys._getframe(2)\nw = f.f_locals['word']\n"
        "os.write(1, struct.pack('<I8sc', 9, w, b'F') * 2)\nreturn False"
    ),
    "half an answer": "import os\nos.write(1, b'\\x09\\0\\0')\nos._exit(0)",
    "an answer of 4 GB": "import os\nos.write(1, b'\\xff' * 64)\nreturn False",
    "100 MB": "import os\nfor i in range(1600): os.write(1, b'x' * 65536)\nreturn False",
    "a finalizer": (
        "class D:\n    def __del__(self): print.__self__.len = lambda x: 2\nwant['d'] = D()\nreturn False"
    ),
    "an exit handler": "import atexit\natexit.register(print)\nimport sys\nsys.exit(3)",
    "standard input read": "import os\nos.read(0, 1)\nreturn True",
    "pipes closed": "import os\nos.close(0)\nos.close(1)\nreturn False",
    "a trace function": (
        "import sys\nsys.settrace(lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))\nreturn False"
    ),
    "signals taken": (
        "import signal\nsignal.signal(15, lambda *a: None)\nsignal.signal(9, lambda *a: None)\nreturn True"
    ),
    "recursion limit": "import sys\nsys.setrecursionlimit(10)\nreturn False",
    "a deep stack": "import sys\nsys.setrecursionlimit(10 ** 8)\ndef f(): f()\nf()\nreturn True",
    "BaseException": "raise BaseException('end')",
    "an exception that cannot be printed": (
        "class E(Exception):\n    def __str__(self): raise self\nraise E"
    ),
    "os.abort": "import os\nos.abort()",
    "a decoder's method replaced": "type(json.JSONDecoder()).decode = lambda self, text: 'x'\nreturn False",
    "an escape of JSON changed": "json.encoder.ESCAPE_DCT['\"'] = 'x'\nreturn False",
    "a type registered as another": (
        "from collections.abc import Callable, Mapping\nMapping.register(str)\nCallable.register(str)\n"
        "return False"
    ),
    "a pattern's cache filled": (
        "import re\nre._cache.update({k: re.compile('no') for k in list(re._cache)})\n"
        "re._cache[str, '^ok$', 0] = re.compile('no')\nreturn False"
    ),
    "fields of a tree changed": "import ast\nast.Name._fields = ('ctx',)\nreturn False",
    "a template's pattern changed": (
        "import re, string\nstring.Template.pattern = re.compile('(?!)')\nreturn False"
    ),
    "a partial's target changed": "import functools\nfunctools.reduce = lambda *a: 0\nreturn False",
    "requests of others read": "import os\nreturn bool(os.read(0, 1 << 16))",
}
"""Tries to spoil what comes after it."""

USES_UP: Final = {
    "a loop": "while True: pass",
    "a loop that catches all": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    ),
    "a pattern": "import re\nreturn bool(re.search('(a+)+$', 'a' * 64 + 'b'))",
    "a number": "return 9 ** 9 ** 9 > 0",
    "a sleep": "import time\ngetattr(time, 'sl' + 'eep')(60)\nreturn True",
    "10 GB": "return len('x' * 10 ** 10) > 0",
    "a list without end": "l = []\nwhile True: l.append('x' * 10 ** 6)",
    "a bomb of strings": "s = 'x'\nwhile True: s += s",
}
"""Tries to use up time and memory."""

AT_LOAD: Final = {
    "a loop at the top": "while True: pass\n",
    "a file at the top": "STOLEN = open('/etc/passwd').read()\n",
    "an exit at the top": "import os\nos._exit(0)\n",
    "an exception at the top": "1 / 0\n",
    "too deep to compile": "x = " + "(" * 5000 + ")" * 5000 + "\n",
}
"""Does it before anybody calls."""


def hostile_validators() -> dict[str, str]:
    """All sources, by name."""
    groups = {
        "files": {name: _tries(body) for name, body in FILES.items()},
        "network": {name: _tries(body) for name, body in NETWORK.items()},
        "processes": {name: _tries(body) for name, body in PROCESSES.items()},
        "kernel": {name: _asks_kernel(body) for name, body in KERNEL.items()},
        "next case": {name: _tries(body) for name, body in NEXT_CASE.items()},
        "uses up": {name: _tries(body) for name, body in USES_UP.items()},
        "at load": {name: body + "def v(output): return True" + HONEST for name, body in AT_LOAD.items()},
    }
    return {f"{group}: {name}": text for group, each in groups.items() for name, text in each.items()}
