"""The support desk: customers, tickets, comments and a knowledge base."""
