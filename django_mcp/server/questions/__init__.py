"""Questions to the client (elicitation, sampling, roots): asked once in code, in either era.

``kinds`` are the questions, ``requests`` their form on the wire; ``fields``, ``types`` and the
framework's forms say what an elicitation may ask for. ``asking`` asks: in the legacy era it sends
a request and waits, in the modern one it suspends the call until the client comes back, with what
``rounds`` keeps in between. ``calls`` and ``declared`` connect all that with the site's functions.
"""

from __future__ import annotations
