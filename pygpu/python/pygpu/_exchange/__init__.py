"""Arrays of other libraries and processes: protocols, and descriptions of memory that is shared."""
