"""The smallest server of each peer, in its own idiom: fifty tools, three of which do something."""
