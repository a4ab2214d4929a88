"""REST framework's views as tools. Imported only where a site registers one.

The view is called, so permissions, throttles, filters, pages and what a site has overridden are the
API's own; the serializer, the filters and the paginator describe the arguments. The site's class
stays as it is.
"""

from __future__ import annotations

from .tools import tools_of

__all__ = ["tools_of"]
