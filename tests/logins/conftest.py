"""Run with settings of their own, by ``--ds=tests.logins.settings``; else there is nothing here."""

from __future__ import annotations

import os

import pytest

if os.environ.get("DJANGO_SETTINGS_MODULE", "") == "tests.logins.settings":

    @pytest.fixture(autouse=True)
    def own_core():
        """Leave nothing behind that was made by other settings."""
        from django_mcp.contrib.oauth.dot import consent, views  # noqa: PLC0415  as below

        yield
        for view in (views.TokenView, views.RevokeTokenView, consent.AuthorizationView):
            if "_oauthlib_core" in vars(view):
                del view._oauthlib_core

    @pytest.fixture
    def anna(db, django_user_model):
        return django_user_model.objects.create_superuser("anna", password="secret")

    @pytest.fixture
    def editor(anna):
        """A client that anna uses."""
        from .visitor import Visitor  # noqa: PLC0415  Django is set up only now

        return Visitor(anna)

    @pytest.fixture
    def configure(settings):
        """Change keys of DJANGO_MCP, or by ``provider`` those of OAUTH2_PROVIDER."""

        def change(provider: dict | None = None, **keys):
            if keys:
                settings.DJANGO_MCP = {**settings.DJANGO_MCP, **keys}
            if provider:
                settings.OAUTH2_PROVIDER = {**settings.OAUTH2_PROVIDER, **provider}

        return change

    @pytest.fixture(scope="session")
    def serving(tmp_path_factory):
        from tests.contrib.oauth.document_host import serving_documents  # noqa: PLC0415  as above

        with serving_documents(tmp_path_factory.mktemp("documents")) as found:
            yield found

    @pytest.fixture
    def documents(serving, monkeypatch):
        """A host of documents that is taken for one of the public Internet."""
        from django.core.cache import cache  # noqa: PLC0415  as above

        from django_mcp.contrib.oauth import client_documents  # noqa: PLC0415  as above

        serving.shown.clear()
        serving.asked.clear()
        cache.clear()  # in which DOT keeps what could not be fetched
        monkeypatch.setattr(client_documents, "is_public", lambda address: True)
        monkeypatch.setattr(client_documents, "tls_context", serving.trusted)
        return serving
else:
    collect_ignore_glob = ["test_*.py"]
