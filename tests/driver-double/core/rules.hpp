// What must hold before a function of a driver runs.
#pragma once

enum Rule : unsigned {
    ALWAYS = 0,
    INIT = 1,                // after cuInit
    STICKY = 2,              // unless the current context's device has failed
    CONTEXT = 4 | INIT | STICKY, // with a current context that is not destroyed
    UNSAFE = 8,              // not while a capture forbids what could wait
    ALONE = 32,              // not with the same object on two threads at once, which is counted
    QUERY = 16,              // also from a host function that a stream runs
};
