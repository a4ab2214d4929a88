"""What clients that others wrote log in to: a site, scripts for the clients, and a person."""
