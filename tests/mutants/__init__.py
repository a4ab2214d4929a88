"""Small bugs planted in the code at random, and how many of them its tests notice."""
