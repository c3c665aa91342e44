// Code as it passes between compiler and driver: a library with a stamp in it, which has its
// architecture and a checksum; or that as text in place of PTX.
#pragma once

#include <string>

namespace compiler {

// The image of a library that the compiler made.
std::string sealed(std::string library, const std::string& architecture);

// The image as text that a driver takes for PTX.
std::string as_ptx(const std::string& image, const std::string& architecture);

struct Image {
    int status; // of the driver: 200, 209, 218, 301 ...
    std::string log;
    std::string bytes; // a library
    std::string architecture;
};

// Reads an image from memory of which only the start is known, as a driver must.
Image read_image(const void* memory);

// The same with the size known.
Image read_image(const std::string& bytes);

} // namespace compiler
