// AMD's run-time compilers have its names built in.
