// Code as compiler and driver exchange it: a library with a stamp, which contains the architecture
// and a checksum, or the same encoded as text in place of PTX.
#pragma once

#include <string>

namespace compiler {

// Returns the image of a library that the compiler made.
std::string sealed(std::string library, const std::string& architecture);

// Returns the image as text that a driver accepts as PTX.
std::string as_ptx(const std::string& image, const std::string& architecture);

struct Image {
    int status; // of the driver: 200, 209, 218, 301 and similar
    std::string log;
    std::string bytes; // a library
    std::string architecture;
};

// Reads an image from an address without a known size, as a driver must.
Image read_image(const void* memory);

// Reads an image of known size.
Image read_image(const std::string& bytes);

} // namespace compiler
