// Copies from global to shared memory that a device makes in the background. Here they are made at once.
#pragma once

extern "C++" {

static inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    memcpy(to, from, bytes - zeros);
    memset((char*)to + (bytes - zeros), 0, zeros);
}
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(size_t) {}

} // extern "C++"
