"""The command line, PyCUDA's names, and reports of the memory that a program leaves allocated."""
