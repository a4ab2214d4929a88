"""bolt-mcp: the official Rust SDK inside django-bolt."""
