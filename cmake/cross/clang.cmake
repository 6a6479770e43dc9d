# cmake --toolchain cmake/cross/clang.cmake: this system's programs, by another compiler (Debian: clang).
set(CMAKE_C_COMPILER clang)
