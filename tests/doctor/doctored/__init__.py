"""A site with one tool: for everybody, or for who has a token of an authorization server."""
