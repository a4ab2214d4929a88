"""Questions to the client (elicitation, sampling, roots): asked once in code, in either era.

``kinds`` and ``sampling`` are the questions, ``input_requests`` their form on the wire; ``fields``,
``type_forms`` and ``django_forms`` say what an elicitation may ask for. In the legacy era
``asking`` sends a request and waits, in the modern one ``mrtr`` holds what a call asked before. It
is used by ``context``, signatures and calls of functions, and imports of the server only the
exchange and what is below. Begin with :mod:`.asking`.
"""

from __future__ import annotations
