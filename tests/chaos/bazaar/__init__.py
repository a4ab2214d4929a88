"""The site that is sabotaged: tools that leave a trace, and faults that can be planted in it."""
