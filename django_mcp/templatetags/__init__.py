"""Tags for templates of the site."""
