// Types and numbers of the CUDA driver API, as declared in cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

// Opaque pointers are numbers here: they are looked up, never dereferenced.
using Handle = uint64_t;
using CUdeviceptr = uint64_t;
using CUdevice = int;
using CUhostFn = void (*)(void*);
using CUstreamCallback = void (*)(Handle stream, int status, void* data);
using CUoccupancyB2DSize = size_t (*)(int block);

enum Status : int {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    MAP_FAILED_STATUS = 205, // the macro of mmap is called MAP_FAILED
    NO_BINARY_FOR_GPU = 209,
    UNSUPPORTED_LIMIT = 215,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_PTX = 218,
    FILE_NOT_FOUND = 301,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    CONTEXT_IS_DESTROYED = 709,
    ASSERT = 710,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    LAUNCH_FAILED = 719,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_INVALIDATED = 901,
    STREAM_CAPTURE_MERGE = 902,
    STREAM_CAPTURE_UNMATCHED = 903,
    STREAM_CAPTURE_UNJOINED = 904,
    STREAM_CAPTURE_ISOLATION = 905,
    STREAM_CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    STREAM_CAPTURE_WRONG_THREAD = 908,
    UNKNOWN = 999,
};

struct CUuuid {
    unsigned char bytes[16];
};
struct CUipcHandle { // CUipcMemHandle and CUipcEventHandle
    unsigned char bytes[64];
};

enum MemoryType : unsigned { HOST = 1, DEVICE = 2, ARRAY = 3, UNIFIED = 4 };

// CUDA_MEMCPY3D. CUDA_MEMCPY3D_PEER has contexts in the reserved fields.
struct CopySide {
    size_t x, y, z, lod;
    unsigned type;
    void* host;
    CUdeviceptr device;
    Handle array;
    Handle context;
    size_t pitch, height;
};
struct CUDA_MEMCPY3D {
    CopySide source, destination;
    size_t width, height, depth;
};
static_assert(sizeof(CUDA_MEMCPY3D) == 200, "the layout of cuda.h");

struct CUDA_ARRAY3D_DESCRIPTOR {
    size_t width, height, depth;
    unsigned format, channels, flags;
};
static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "the layout of cuda.h");

// The flags of an array.
enum ArrayFlags : unsigned { LAYERED = 1, SURFACE_LDST = 2, CUBEMAP = 4, GATHER = 8 };

// CUDA_RESOURCE_DESC: all members of its union begin with the same fields.
struct CUDA_RESOURCE_DESC {
    unsigned type; // 0: array, 2: linear memory, 3: rows
    uint64_t object;
    unsigned format, channels;
    size_t extent[3]; // bytes; or width, height and pitch
    uint64_t reserved[11];
    unsigned flags;
};
static_assert(sizeof(CUDA_RESOURCE_DESC) == 144, "the layout of cuda.h");

struct CUDA_TEXTURE_DESC {
    unsigned address[3], filter, flags, anisotropy, mipmap_filter;
    float mipmap_bias, mipmap_least, mipmap_most, border[4];
    int reserved[12];
};
static_assert(sizeof(CUDA_TEXTURE_DESC) == 104, "the layout of cuda.h");

struct CUmemLocation {
    int type; // 1: device
    int id;
};
struct CUmemPoolProps {
    int allocation_type; // 1: pinned
    int handle_types;
    CUmemLocation location;
    void* security;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
};
static_assert(sizeof(CUmemPoolProps) == 88, "the layout of cuda.h");
struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
};
