"""Reads go where writes go, whatever the site's routers say, since a replica lags behind."""

from __future__ import annotations

import pytest

from django_mcp.models import Session
from tests.support.client import StatelessClient
from tests.support.waiting import in_thread

from . import site, whole_session


class ReadsElsewhere:
    """Send whatever is read to a database that there is not."""

    def db_for_read(self, model, **hints):
        return "replica" if model._meta.app_label == "django_mcp" else None


@pytest.fixture(autouse=True)
def _replicated(settings):
    settings.DATABASE_ROUTERS = [f"{__name__}.ReadsElsewhere"]


def test_the_router_is_asked(settings):
    with pytest.raises(Exception, match="replica"):
        Session.objects.first()


def test_a_session_reads_nothing_from_a_replica(application, on_loop):
    on_loop(whole_session.tell(application))


def test_neither_does_who_listens_without_one(application, on_loop):
    async def main():
        async with StatelessClient(application).listen(toolsListChanged=True) as listening:
            assert "acknowledged" in (await listening.message())["method"]
            await in_thread(site.server.notify_tools_changed)
            assert "tools/list_changed" in (await listening.message())["method"]

    on_loop(main())
