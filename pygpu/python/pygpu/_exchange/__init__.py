"""Arrays of other libraries and processes: protocols, and descriptors of shared memory."""
