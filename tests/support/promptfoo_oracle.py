"""What promptfoo itself makes of the configurations in `tests/data/promptfoo`: prompts and verdicts.

    make convert-oracle        runs promptfoo from npm on all of them, and writes `expected.json` beside them
    … promptfoo_oracle NAME    runs it on some

promptfoo and its dependencies have 1.9 GB and take a minute to install: tests compare with the written file.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

CONFIGURATIONS: Final = Path(__file__).parents[1] / "data" / "promptfoo"
EXPECTED: Final = CONFIGURATIONS / "expected.json"
VERSION: Final = "0.121.20"
INSTALLED: Final = Path(os.environ.get("PROMPTFOO", "build/promptfoo/node_modules/promptfoo"))
_QUIET: Final = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
}


def names() -> list[str]:
    """The configurations."""
    return sorted(path.parent.name for path in CONFIGURATIONS.glob("*/promptfooconfig.yaml"))


def rows_of(name: str) -> list[dict[str, Any]]:
    """Runs one configuration, and returns its results in their order."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        program = INSTALLED.resolve() / "dist" / "src" / "main.js"
        config = ["eval", "-c", "promptfooconfig.yaml", "-o", str(out), "--no-cache", "--no-table"]
        environment = {
            **os.environ,
            **_QUIET,
            "PROMPTFOO_CONFIG_DIR": folder,
            "PROMPTFOO_PYTHON": sys.executable,
        }
        subprocess.run(
            ["node", str(program), *config],
            cwd=CONFIGURATIONS / name,
            env=environment,
            check=False,  # it exits with 100 where a test failed
            capture_output=True,
            timeout=120,
        )
        results = json.loads(out.read_text())["results"]["results"]
    return [_row(each) for each in sorted(results, key=lambda each: (each["testIdx"], each["promptIdx"]))]


def _row(result: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a result."""
    grading = result.get("gradingResult") or {}
    found = grading.get("componentResults") or ()
    parts = [each for each in found if (each.get("assertion") or {}).get("type")]
    has_sets = any(
        (each.get("metadata") or {}).get("assertionSet") for each in found
    )  # their parts follow them
    return {
        "test": result["testIdx"],
        "prompt": result["prompt"]["raw"],
        "success": result["success"],
        **({"error": True} if result.get("failureReason") == 2 else {}),
        "checks": None if has_sets else [each["pass"] for each in parts],
    }


def main() -> None:
    """Writes what promptfoo says."""
    known = json.loads(EXPECTED.read_text())["rows"] if sys.argv[1:] else {}
    found = {**known, **{name: rows_of(name) for name in sys.argv[1:] or names()}}
    EXPECTED.write_text(json.dumps({"version": VERSION, "rows": found}, indent=1, ensure_ascii=False) + "\n")
    print(f"{sum(map(len, found.values()))} results of {len(found)} configurations")  # noqa: T201 - a program


if __name__ == "__main__":
    main()
