"""Arrays of other libraries and processes: protocols, and descriptions of shared memory."""
