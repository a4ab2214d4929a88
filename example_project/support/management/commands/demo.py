"""`manage.py demo`: everything needed to try the example, in one command."""

from __future__ import annotations

import os
import socket
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.urls import reverse
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from example_project.support.clients import ClientLine, client_lines, login_lines
from example_project.support.demo_data.accounts import ADMIN_NAME, demo_password
from example_project.support.demo_data.seeding import is_empty

HOST = "127.0.0.1"
DEFAULT_PORT = "8000"


class Command(BaseCommand):
    """Prepares the database, says how to connect, and serves until it is stopped."""

    help = "Migrate, seed an empty desk, say how to connect, and run the server on PORT."
    # runserver makes the checks; making them here as well would print every warning twice.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--noreload", action="store_false", dest="use_reloader", help="as runserver has it"
        )

    def handle(self, *, use_reloader: bool, **options: Any) -> None:
        port = _port()
        # The autoreloader starts this command again in a child process, for each change.
        if os.environ.get(DJANGO_AUTORELOAD_ENV) != "true":
            _check_free(port)
            self._prepare(verbosity=options["verbosity"])
            self._welcome(f"http://{HOST}:{port}")
        call_command("runserver", f"{HOST}:{port}", use_reloader=use_reloader)

    def _prepare(self, *, verbosity: int) -> None:
        call_command("migrate", interactive=False, verbosity=max(verbosity - 1, 0))
        if is_empty():
            call_command("seed_support", stdout=self.stdout)

    def _welcome(self, site: str) -> None:
        endpoint = site + reverse("django_mcp")
        self._row("Endpoint", endpoint)
        self._row("Admin", f"{site}{reverse('admin:index')}   {_login()}")
        self._row("Access", _access())
        for client in client_lines(endpoint):
            self._paste(client)
        with_login = site + reverse("login_mcp")
        self.stdout.write("\nWith a login in the browser, as any of the users in the README:")
        self._row("Endpoint", with_login)
        for client in login_lines(with_login):
            self._paste(client)
        self.stdout.write("")
        self.stdout.flush()
        connections.close_all()

    def _paste(self, client: ClientLine) -> None:
        self.stdout.write(f"\n{client.client}, {client.place}:")
        self.stdout.write(self.style.MIGRATE_HEADING(client.line))

    def _row(self, label: str, value: str) -> None:
        self.stdout.write(f"{label + ':':<10}{self.style.SUCCESS(value)}")


def _port() -> str:
    port = os.environ.get("PORT") or DEFAULT_PORT
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise CommandError(f"PORT is {port!r}; it must be a number from 1 to 65535.")
    return port


def _check_free(port: str) -> None:
    # Daphne would only log that it cannot listen, and go on without.
    try:
        socket.create_server((HOST, int(port))).close()
    except OSError as error:
        raise CommandError(
            f"Cannot listen on port {port} ({error.strerror}). Choose another: PORT=8001, say."
        ) from error


def _login() -> str:
    admin = User.objects.filter(username=ADMIN_NAME).first()
    if admin is None:
        return "(there is no user called admin; manage.py createsuperuser makes one)"
    password = demo_password()
    if admin.check_password(password):
        return f"login {ADMIN_NAME}, password {password}"
    return f"login {ADMIN_NAME}, with the password that was printed or set before"


def _access() -> str:
    if settings.DEBUG:
        return "clients on this machine act as the user agent; others need a token"
    return "every client needs a token: manage.py mcp token create agent"
