"""The benchmark's own pieces: what they count as an answer, and how they sum up."""
