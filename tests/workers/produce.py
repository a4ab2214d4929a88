"""``python -m workers.produce STREAM FIRST COUNT``: queue numbered messages on a session's stream.

A process of its own, as a host of its own would be.
"""

from __future__ import annotations

import sys
import uuid

import django


def main(stream: uuid.UUID, first: int, count: int) -> None:
    """Queue them, a few at a time; wait where there is no room."""
    from django_mcp.store.delivery import outbox  # noqa: PLC0415
    from django_mcp.store.ledger import ledger  # noqa: PLC0415

    number = first
    while number < first + count:
        some = [_message(each) for each in range(number, min(number + 3, first + count))]
        reader = outbox.write_notifications(stream, some)
        if reader is not None:
            number += len(some)
            ledger().doorbell.wake([reader])


def _message(number: int) -> str:
    return (
        '{"jsonrpc":"2.0","method":"notifications/message",'
        f'"params":{{"level":"info","data":{number}}}}}'
    )


if __name__ == "__main__":
    django.setup()
    main(uuid.UUID(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
