"""Runs snippets in a project, one after the other, as in one session of ``manage.py shell``.

Started as a program, in the directory of the project, with its settings and the files to run. The
environment is that of Django's tests, but for the database, which is the project's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(settings: str, files: list[str]) -> None:
    """Set up Django and run ``files`` in one namespace."""
    # In place of this folder, whose modules would hide installed ones of the same name.
    sys.path[0] = os.getcwd()
    os.environ["DJANGO_SETTINGS_MODULE"] = settings
    import django  # noqa: PLC0415
    from django.test.utils import setup_test_environment  # noqa: PLC0415

    django.setup()
    setup_test_environment()
    namespace = {"__name__": "__main__"}
    for file in files:
        code = compile(Path(file).read_text(encoding="utf-8"), file, "exec")
        exec(code, namespace)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
