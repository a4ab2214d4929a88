"""Users of a site's own kind: the settings of the tests, with another user model."""
