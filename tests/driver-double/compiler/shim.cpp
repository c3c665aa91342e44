// The shim's text, inside the library.
asm(".section .rodata\n"
    ".global double_shim_begin\n.hidden double_shim_begin\n"
    ".global double_shim_end\n.hidden double_shim_end\n"
    "double_shim_begin:\n.incbin \"shim.h\"\n"
    ".incbin \"shim_math.h\"\n"
    "double_shim_end:\n.byte 0\n.text\n");
