# The version from git: its numbers for project() now; the full version at every build (WriteVersion.cmake), because a
# commit does not run CMake again.
find_package(Git QUIET)
set(ASSAY_VERSION_NUMBERS 0.1.0)   # until the first tag vX.Y.Z, and outside a git checkout
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -c safe.directory=* describe --tags --abbrev=0 --match "v[0-9]*"
                  WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
                  OUTPUT_VARIABLE tag OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(tag MATCHES "^v([0-9]+\\.[0-9]+\\.[0-9]+)")
    set(ASSAY_VERSION_NUMBERS ${CMAKE_MATCH_1})
  endif()
endif()

# The library `name`, which implements version.h; rebuilt only when the version changes.
function(assay_version_library name)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" flags)
  if(ASSAY_SANITIZE)
    string(APPEND flags " -fsanitize=${ASSAY_SANITIZE}")
  endif()
  set(source "${CMAKE_BINARY_DIR}/generated/version.cpp")
  add_custom_target(${name}_source BYPRODUCTS "${source}"
    COMMAND ${CMAKE_COMMAND} "-DGIT=${GIT_EXECUTABLE}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DOUT=${source}"
            "-DTEMPLATE=${PROJECT_SOURCE_DIR}/harness/core/version.cpp.in" "-DNUMBERS=${ASSAY_VERSION_NUMBERS}"
            "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
            "-DFLAGS=${flags}" -P "${PROJECT_SOURCE_DIR}/cmake/WriteVersion.cmake"
    COMMENT "Version from git" VERBATIM)
  add_library(${name} STATIC "${source}")
  add_dependencies(${name} ${name}_source)
  target_link_libraries(${name} PUBLIC assay_flags)
endfunction()
