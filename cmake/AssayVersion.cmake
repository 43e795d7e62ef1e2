# Version from git: the last tag vX.Y.Z, else 0.1.0; the full word goes into the binary at build time.
find_package(Git QUIET)
set(ASSAY_VERSION_NUMBERS 0.1.0)
set(ASSAY_VERSION_TEXT "0.1.0")
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --tags --always --dirty
                  WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(described MATCHES "^v([0-9]+\\.[0-9]+\\.[0-9]+)")
    set(ASSAY_VERSION_NUMBERS ${CMAKE_MATCH_1})
    set(ASSAY_VERSION_TEXT "${described}")
  elseif(described)
    set(ASSAY_VERSION_TEXT "0.1.0+g${described}")
  endif()
endif()
