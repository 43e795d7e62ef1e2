# Options and settings that every target shares.
set(ASSAY_MPI AUTO CACHE STRING "Build libassay-mpi.so: AUTO (if MPI is found), ON (fail without MPI), OFF")
set(ASSAY_CUDA AUTO CACHE STRING
    "Build libassay-cuda.so: AUTO (if the toolkit is found), ON (fail without it), OFF")
set(ASSAY_NCCL AUTO CACHE STRING "NCCL in the CUDA module: AUTO (if NCCL is found), ON (fail without it), OFF")
foreach(option ASSAY_MPI ASSAY_CUDA ASSAY_NCCL)
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${option} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option} is '${${option}}': must be AUTO, ON or OFF")
  endif()
endforeach()
option(ASSAY_TESTS "Build the tests" ON)
set(ASSAY_UNIT_TESTS ALL CACHE STRING
    "ALL, or TIMED: only those of code that runs inside timed windows (`./dev test` runs all with sanitizers)")
set_property(CACHE ASSAY_UNIT_TESTS PROPERTY STRINGS ALL TIMED)
option(ASSAY_BATCHES "Compile the sources of a room in batches: a third of the work; OFF for short rebuilds" ON)
# Other compilers give other warnings, which should not stop anybody from measuring.
set(tried OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^(12|14)[.]")
  set(tried ON)
endif()
option(ASSAY_WERROR "Treat warnings as errors; by default with g++ 12 and 14" ${tried})
option(ASSAY_FUZZ "Build the fuzz targets with libFuzzer (clang only), and no other test" OFF)
if(ASSAY_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
  message(FATAL_ERROR "ASSAY_FUZZ=ON needs clang: cmake --preset fuzz, or ./dev fuzz")
endif()
set(ASSAY_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined or thread")
set(default_deps "$ENV{ASSAY_DEPS}")
if(NOT default_deps)
  set(default_deps "$ENV{HOME}/.cache/assay/deps/venv")
endif()
set(ASSAY_DEPS "${default_deps}" CACHE PATH "Python environment that holds the wheels of cmake/packages.txt")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
# The binary and its modules are built into one folder; installed, they are in bin/ and lib/assay/.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
# After installation, libraries outside the system's folders (oneDNN's wheel) must still be found.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
# The same in the build folder: otherwise CMake ends the path with a colon there, and the loader then searches the working
# folder too, where anybody may have put a library.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

add_library(assay_flags INTERFACE)
target_include_directories(assay_flags INTERFACE "${PROJECT_SOURCE_DIR}")
# Messages that name a source name it from the repository's root: no program holds the path of the folder it was built in.
target_compile_options(assay_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# CUDA sources have their own flags (AssayCuda.cmake).
target_compile_options(assay_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>)
# GCC 12 warns about overlapping copies inside std::string (GCC bug 105329).
target_compile_options(assay_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
# GCC 13 and 14 assume that a returned reference refers to temporary arguments (GCC bugs 107532, 109642).
target_compile_options(assay_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>)
if(ASSAY_WERROR)
  target_compile_options(assay_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE})
  # GNU ld takes a seventh of the time that a sanitized build takes.
  find_program(MOLD mold)
  mark_as_advanced(MOLD)
  if(MOLD)
    target_link_options(assay_flags INTERFACE -fuse-ld=mold)
  endif()
  if(ASSAY_SANITIZE MATCHES undefined)
    # These checks are half of UBSan's code and compile time. AddressSanitizer finds null pointers and overruns, and
    # alignment is checked only in rooms that cast memory (they set ASSAY_CASTS_MEMORY).
    target_compile_options(assay_flags INTERFACE -fno-sanitize=null,vptr,object-size
      $<$<NOT:$<BOOL:$<TARGET_PROPERTY:ASSAY_CASTS_MEMORY>>>:-fno-sanitize=alignment>)
  endif()
  if(ASSAY_FUZZ)
    # Every room reports coverage; undefined behaviour aborts, as a bad access does.
    target_compile_options(assay_flags INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
    target_link_options(assay_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
  # In instrumented code GCC warns that <regex> reads uninitialized memory (GCC bug 105562). Clang warns about other things
  # than GCC, which has warned already.
  target_compile_options(assay_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:Clang>:-w>)
endif()

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()
