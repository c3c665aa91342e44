// The text is in front of each program that includes this file.
