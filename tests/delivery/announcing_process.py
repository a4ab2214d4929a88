"""A process of its own that announces something and ends, as a shell, a task or a command does.

Its arguments are kinds of lists, and URIs. ``CHANNEL_LAYERS`` is a setting as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60


def announce_elsewhere(*topics: str, **layers: Any) -> None:
    """Announce ``topics`` in another process, and wait until it has ended."""
    from django.db import connection  # noqa: PLC0415

    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": _url(connection.settings_dict),
        "CHANNEL_LAYERS": json.dumps(layers),
    }
    command = [sys.executable, "-W", "error", __file__, *topics]
    subprocess.run(command, env=environment, cwd=ROOT, check=True, timeout=SECONDS)


def _url(database: dict[str, Any]) -> str:
    if database["ENGINE"].endswith("sqlite3"):
        return f"sqlite:///{database['NAME']}"
    scheme = "postgres" if "postgresql" in database["ENGINE"] else "mysql"
    password = f":{database['PASSWORD']}" if database["PASSWORD"] else ""
    host = f"{database['HOST']}:{database['PORT']}" if database["PORT"] else database["HOST"]
    return f"{scheme}://{database['USER']}{password}@{host}/{database['NAME']}"


def main(topics: list[str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django  # noqa: PLC0415
    from django.conf import settings  # noqa: PLC0415

    settings.CHANNEL_LAYERS = json.loads(os.environ["CHANNEL_LAYERS"])
    django.setup()
    from django.db import transaction  # noqa: PLC0415

    from django_mcp.store import doorbell  # noqa: PLC0415
    from django_mcp.store.ledger import ledger  # noqa: PLC0415
    from tests.delivery.changes import server  # noqa: PLC0415 - a process of its own

    # On a busy machine it takes longer to reach a layer than such a process would wait for it.
    doorbell.WAIT_SECONDS = SECONDS  # type: ignore[misc]
    with transaction.atomic():
        for topic in topics:
            if "://" in topic:
                server.notify_resource_updated(topic)
            else:
                getattr(server, f"notify_{topic}_changed")()
    assert not ledger()._started


if __name__ == "__main__":
    main(sys.argv[1:])
