"""Tools made of a model, as ``ModelAdmin`` makes pages of it.

A site writes a class of options, ``ModelTools``, and ``@mcp.model(Ticket)`` registers what follows
from it with a server: ordinary tools and resources. So this imports ``server`` and what is below;
nothing below knows of it, and who uses none of it imports none of it. Begin at ``toolset.py`` and
``options.py``, then in the packages ``fields``, ``finding`` and ``changing``. ``generic`` makes
five tools for many models of an admin site.
"""
