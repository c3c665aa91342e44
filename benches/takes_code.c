/* In front of a fake driver: takes the code that a real one takes, whose kernels then do nothing. All other calls are
 * the fake driver's. first_use.py compiles it, with -DHIP for AMD's names, and links it to the fake driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HIP
#define NAME(hip, cuda) hip
#define MACHINE 224 /* EM_AMDGPU */
#else
#define NAME(hip, cuda) cuda
#define MACHINE 190 /* EM_CUDA */
#endif
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define NOT_FOUND 500

/* Code that was taken, or with size 0 one of its kernels. */
typedef struct {
    char *code;
    size_t size;
} Taken;

enum { MOST = 1 << 16 };
static Taken *taken[MOST];
static int count;

static void *fake(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "the fake driver has no %s\n", name);
        abort();
    }
    return function;
}

/* Handles of the fake driver are compared, never followed. */
static int is_taken(const void *handle) {
    for (int i = count; i-- > 0;)
        if (taken[i] == handle) return 1;
    return 0;
}

static Taken *take(const void *code, size_t size) {
    Taken *made = calloc(1, sizeof *made);
    if (!made || count == MOST || !(made->code = malloc(size + 1))) abort();
    memcpy(made->code, code, size);
    made->size = size;
    return taken[count++] = made;
}

/* The bytes of real code, by the ELF header's table of sections, which is last; 0 for other code. */
static size_t size_of(const unsigned char *code) {
    uint64_t sections;
    uint16_t machine, size, number;
    if (memcmp(code, "\x7f" "ELF", 4) != 0)
        return MACHINE == 190 && strstr((const char *)code, "\n.target sm_") ? strlen((const char *)code) : 0;
    memcpy(&machine, code + 0x12, 2);
    memcpy(&sections, code + 0x28, 8);
    memcpy(&size, code + 0x3a, 2);
    memcpy(&number, code + 0x3c, 2);
    return machine == MACHINE ? sections + (size_t)size * number : 0;
}

#define LOAD NAME(hipModuleLoadDataEx, cuModuleLoadDataEx)
int LOAD(void **module, const void *image, unsigned options, int *keys, void **values) {
    size_t size = size_of(image);
    if (!size)
        return ((int (*)(void **, const void *, unsigned, int *, void **))fake(TEXT(LOAD)))(
            module, image, options, keys, values);
    *module = take(image, size);
    return 0;
}

#define UNLOAD NAME(hipModuleUnload, cuModuleUnload)
int UNLOAD(void *module) {
    return is_taken(module) ? 0 : ((int (*)(void *))fake(TEXT(UNLOAD)))(module);
}

#define FUNCTION NAME(hipModuleGetFunction, cuModuleGetFunction)
int FUNCTION(void **function, void *module, const char *name) {
    if (!is_taken(module))
        return ((int (*)(void **, void *, const char *))fake(TEXT(FUNCTION)))(function, module, name);
    Taken *from = module;
    if (!memmem(from->code, from->size, name, strlen(name))) return NOT_FOUND;
    *function = take("", 0);
    return 0;
}

#define ATTRIBUTE NAME(hipFuncGetAttribute, cuFuncGetAttribute)
int ATTRIBUTE(int *value, int attribute, void *function) {
    if (!is_taken(function))
        return ((int (*)(int *, int, void *))fake(TEXT(ATTRIBUTE)))(value, attribute, function);
    *value = attribute == 0 ? 1024 : 0; /* The first attribute is the number of threads in a block. */
    return 0;
}

#define LAUNCH NAME(hipModuleLaunchKernel, cuLaunchKernel)
int LAUNCH(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
           unsigned shared, void *stream, void **arguments, void **more) {
    typedef int (*Call)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
    if (is_taken(function)) return 0;
    return ((Call)fake(TEXT(LAUNCH)))(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, more);
}

#define OCCUPANCY \
    NAME(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, \
         cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
int OCCUPANCY(int *blocks, void *function, int threads, size_t shared, unsigned flags) {
    if (!is_taken(function))
        return ((int (*)(int *, void *, int, size_t, unsigned))fake(TEXT(OCCUPANCY)))(
            blocks, function, threads, shared, flags);
    *blocks = 2;
    return 0;
}
