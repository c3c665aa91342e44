"""Around a program: its command line, PyCUDA's names, what it leaves behind."""
