"""Users of another model than Django's own, with another kind of key, are deleted as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.servers import CHECKOUT

TESTS = Path(__file__).with_name("test_deleted_users.py")
BOUND = 600


def test_users_of_a_model_of_the_sites_own_are_deleted_beside_their_clients():
    # AUTH_USER_MODEL is part of the migrations: it takes a process, and a database, of its own.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    if url := environment.get("DATABASE_URL"):
        environment["DATABASE_URL"] = f"{url}_members_{os.getpid()}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)]
    done = subprocess.run(
        [*command, "--ds=tests.members.settings"],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == 0, done.stdout
