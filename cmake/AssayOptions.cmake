# Options and settings that every target shares.
set(ASSAY_MPI AUTO CACHE STRING "Build libassay-mpi.so: AUTO, ON (fail without MPI), OFF")
set(ASSAY_CUDA AUTO CACHE STRING "Build libassay-cuda.so: AUTO, ON (fail without the CUDA toolkit), OFF")
set_property(CACHE ASSAY_MPI ASSAY_CUDA PROPERTY STRINGS AUTO ON OFF)
option(ASSAY_TESTS "Build the tests" ON)
option(ASSAY_WERROR "Treat warnings as errors" ON)
set(ASSAY_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# The binary and its modules stand beside each other.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")

add_library(assay_flags INTERFACE)
target_include_directories(assay_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(assay_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
# GCC 12 warns of overlaps in std::string's own assignment (GCC bug 105329).
target_compile_options(assay_flags INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(ASSAY_WERROR)
  target_compile_options(assay_flags INTERFACE -Werror)
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()
