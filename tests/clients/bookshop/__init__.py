"""A small Django app whose shelves the official clients look through."""
