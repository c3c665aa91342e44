// The preconditions of the driver's functions.
#pragma once

enum Rule : unsigned {
    ALWAYS = 0,
    INIT = 1,                // after cuInit
    STICKY = 2,              // unless the current context's device has failed
    CONTEXT = 4 | INIT | STICKY, // with a current context that has not been destroyed
    UNSAFE = 8,              // not while a capture forbids calls that could wait
    ALONE = 32,              // never concurrently with the same object; violations are counted
    QUERY = 16,              // also from a host function that a stream runs
};
