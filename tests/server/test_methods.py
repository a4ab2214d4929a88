"""What is known of the methods, beside their handlers."""

from __future__ import annotations

from django_mcp.server.methods import METHODS


def test_only_what_may_run_the_sites_functions_or_listens_can_become_a_stream():
    """All others are answered at once, without the means to send anything before."""
    assert {name for name, method in METHODS.items() if method.sends_messages} == {
        "prompts/get",
        "resources/read",
        "subscriptions/listen",
        "tools/call",
    }
