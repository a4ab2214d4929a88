"""``python -m tests.logins.prepare``: the people of a site that is served."""

from __future__ import annotations

import django


def main() -> None:
    """Make anna, who may do everything, and berta, who may log in at the admin."""
    django.setup()
    from django.contrib.auth import get_user_model  # noqa: PLC0415  Django is set up only now

    users = get_user_model()._default_manager
    users.create_superuser("anna", password="secret")
    users.create_user("berta", password="secret", is_staff=True)


if __name__ == "__main__":
    main()
