"""The policy that a host makes of what an app declares (2026-01-26, MCP Apps, "Mitigations")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def policy_of(csp: Mapping[str, Sequence[str]]) -> str:
    """Return the header ``Content-Security-Policy``; without ``csp`` that of the default."""
    resources, connect = csp.get("resourceDomains", ()), csp.get("connectDomains", ())
    directives = {
        "default-src": ["'none'"],
        "script-src": ["'self'", "'unsafe-inline'", *resources],
        "style-src": ["'self'", "'unsafe-inline'", *resources],
        "img-src": ["'self'", "data:", *resources],
        "font-src": ["'self'", *resources],
        "media-src": ["'self'", "data:", *resources],
        "connect-src": connect or ["'none'"],
        # The frame that is written into this one has no address.
        "frame-src": csp.get("frameDomains") or ["'none'"],
        "object-src": ["'none'"],
        "base-uri": csp.get("baseUriDomains") or ["'self'"],
    }
    return "; ".join(f"{name} {' '.join(values)}" for name, values in directives.items())
