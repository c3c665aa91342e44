// Asynchronous copies from global to shared memory. They are made immediately.
#pragma once

extern "C++" {

static inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    memcpy(to, from, bytes - zeros);
    memset((char*)to + (bytes - zeros), 0, zeros);
}
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(size_t) {}

} // extern "C++"
