"""Several server processes on one database, with nothing that keeps a session at one of them."""
