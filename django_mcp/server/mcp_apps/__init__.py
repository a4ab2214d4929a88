"""Pages that clients show with what tools return: MCP Apps, made by templates of the site.

``app`` is one page and its resource, ``page_options`` what hosts are told of it, ``rendering`` the
template without anything of a request, ``inlining`` and ``page_forms`` what the tags ``mcp_apps``
write, ``loaded_urls`` what a page would load. Nothing here is imported by sites without an app.
"""
