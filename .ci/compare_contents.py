"""Sees that sdist and wheel have each file of the package that the repository has, and no other."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGE = "django_mcp/"


def names_in(distribution: Path) -> set[str]:
    """Return what a distribution has of the package, as paths of the repository."""
    if distribution.suffix == ".whl":
        names = zipfile.ZipFile(distribution).namelist()
    else:
        with tarfile.open(distribution) as archive:
            names = [each.name.partition("/")[2] for each in archive if each.isfile()]
    return {name for name in names if name.startswith(PACKAGE)}


def main(*distributions: str) -> None:
    """Compare each distribution with what git has."""
    listed = subprocess.run(
        ["git", "ls-files", PACKAGE], check=True, capture_output=True, text=True
    )
    wanted = set(listed.stdout.splitlines())
    assert wanted, "git has no file of the package"
    assert {Path(each).suffix for each in distributions} == {".whl", ".gz"}, distributions
    for distribution in map(Path, distributions):
        differing = sorted(wanted ^ names_in(distribution))
        if differing:
            sys.exit(f"{distribution.name} and the repository differ in {', '.join(differing)}")
        print(f"{distribution.name}: {len(wanted)} files of the package")


if __name__ == "__main__":
    main(*sys.argv[1:])
