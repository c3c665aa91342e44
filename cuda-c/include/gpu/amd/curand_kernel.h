// The text is in front of each program that names this file.
