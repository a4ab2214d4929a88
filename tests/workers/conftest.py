"""The workers that most tests of this directory share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.services import require_redis

from .serving import HERE, Workers, serving

PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
CORE = "channels_redis.core.RedisChannelLayer"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this directory."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.workers)


@pytest.fixture(scope="session", params=["polling", "core", "pubsub", "wsgi"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Two workers, with and without a channel layer, and two under WSGI."""
    if request.param == "wsgi":
        # Two seconds are gunicorn's own, after which it may close what a client just writes to.
        patient = "--keep-alive 75"
        with serving(*["wsgi-streams"] * 2, GUNICORN_CMD_ARGS=patient, PLANT="prompt") as served:
            served.is_thorough = False  # the rows are those that the workers at the mount write
            yield served
        return
    layer = {"polling": "", "core": CORE, "pubsub": PUBSUB}[request.param]
    if layer:
        require_redis()
    with serving(LAYER=layer, PLANT="prompt") as served:
        yield served
