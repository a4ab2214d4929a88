from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from example_project import environment

BASE = Path("/srv/desk")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:///desk.sqlite3", "/srv/desk/desk.sqlite3"),
        ("sqlite:////var/lib/my%20desk.sqlite3", "/var/lib/my desk.sqlite3"),
        ("sqlite://:memory:", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
    ],
)
def test_sqlite_urls(url, name):
    assert environment.database(url, base=BASE)["NAME"] == name


def test_sqlite_waits_for_writers_and_lets_readers_pass():
    options = environment.database("sqlite:///desk.sqlite3?timeout=20", base=BASE)["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in options["init_command"]
    assert options["timeout"] == 20


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgresql_url(scheme):
    url = f"{scheme}://me:p%40ss%2Fword@db.example.com:5433/support?sslmode=require"
    assert environment.database(url, base=BASE) == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "support",
        "USER": "me",
        "PASSWORD": "p@ss/word",
        "HOST": "db.example.com",
        "PORT": "5433",
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"sslmode": "require"},
    }


def test_socket_directory_comes_in_the_query():
    database = environment.database("postgres:///support?host=/run/postgresql", base=BASE)
    assert (database["HOST"], database["OPTIONS"]) == ("/run/postgresql", {})


@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_mysql_url(scheme):
    database = environment.database(f"{scheme}://root@127.0.0.1/support", base=BASE)
    assert database["ENGINE"] == "django.db.backends.mysql"
    assert (database["USER"], database["PASSWORD"], database["PORT"]) == ("root", "", "")
    assert database["OPTIONS"] == {"charset": "utf8mb4", "isolation_level": "read committed"}


@pytest.mark.parametrize(
    ("url", "message"),
    [("oracle://db/support", "use one of: sqlite, postgres"), ("sqlite://", "names no file")],
)
def test_refused_urls_say_what_to_write(url, message):
    with pytest.raises(ImproperlyConfigured, match=message):
        environment.database(url, base=BASE)


def test_memory_serves_without_redis():
    assert environment.caches("")["default"]["BACKEND"].endswith("LocMemCache")
    assert environment.channel_layers("")["default"]["BACKEND"].endswith("InMemoryChannelLayer")


def test_redis_url_serves_both():
    url = "redis://127.0.0.1:6379/3"
    assert environment.caches(url)["default"]["LOCATION"] == url
    assert environment.channel_layers(url)["default"]["CONFIG"] == {"hosts": [url]}


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("Yes", True), ("0", False), ("off", False), ("", True)]
)
def test_a_flag_is_read_from_a_word(monkeypatch, value, expected):
    monkeypatch.setenv("SOME_FLAG", value)
    assert environment.flag("SOME_FLAG", default=True) is expected


def test_words_are_parted_by_commas(monkeypatch):
    monkeypatch.setenv("SOME_WORDS", " a.example.com, ,b.example.com ")
    assert environment.words("SOME_WORDS", default=[]) == ["a.example.com", "b.example.com"]
    monkeypatch.delenv("SOME_WORDS")
    assert environment.words("SOME_WORDS", default=["localhost"]) == ["localhost"]


def import_settings(**variables: str) -> subprocess.CompletedProcess[str]:
    hidden = {"DJANGO_SECRET_KEY", "DJANGO_DEBUG", "DJANGO_SETTINGS_MODULE"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    code = "from example_project import settings; print(settings.DEBUG, settings.SECRET_KEY)"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=kept | variables,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_debug_has_a_key_that_says_it_is_insecure():
    assert import_settings().stdout.startswith("True insecure-")


def test_without_debug_the_secret_key_is_required():
    refused = import_settings(DJANGO_DEBUG="0")
    assert refused.returncode != 0
    assert "Set DJANGO_SECRET_KEY" in refused.stderr


def test_secret_key_comes_from_the_environment():
    settings = import_settings(DJANGO_DEBUG="0", DJANGO_SECRET_KEY="from-outside")
    assert settings.stdout == "False from-outside\n"
