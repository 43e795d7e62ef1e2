# Embeds the files that every HTML report contains, as C++ constants (reports/render/assets.h).

# Chart.js, the minified build for browsers: 3.9.1 in Debian 12 and 13 and their derivatives.
find_file(ASSAY_CHART_JS NAMES chart.min.js chart.umd.js PATHS /usr/share/javascript /usr/share/nodejs /usr/local/share/javascript
          PATH_SUFFIXES chart.js chart.js/dist NO_DEFAULT_PATH DOC "Chart.js 3.9 or later, minified, for browsers")
mark_as_advanced(ASSAY_CHART_JS)
if(NOT ASSAY_CHART_JS)
  message(FATAL_ERROR "Chart.js is missing: install libjs-chart.js, or let ./dev build do it (-DASSAY_CHART_JS=FILE names another)")
endif()
file(READ "${ASSAY_CHART_JS}" chart_head LIMIT 200)
if(NOT chart_head MATCHES "Chart\\.js v([0-9]+\\.[0-9]+\\.[0-9]+)")
  message(FATAL_ERROR "${ASSAY_CHART_JS} does not say that it is Chart.js")
elseif(CMAKE_MATCH_1 VERSION_LESS 3.9)
  message(FATAL_ERROR "${ASSAY_CHART_JS} is Chart.js ${CMAKE_MATCH_1}: pages need 3.9 or later (-DASSAY_CHART_JS=FILE)")
endif()
message(STATUS "assay: Chart.js ${CMAKE_MATCH_1} (${ASSAY_CHART_JS})")

# Writes the C++ source OUT that defines each NAME=FILE: assay_embed(OUT NAMESPACE HEADER NAME=FILE...)
function(assay_embed out namespace header)
  set(files "")
  foreach(asset ${ARGN})
    string(REGEX REPLACE "^[^=]*=" "" file "${asset}")
    list(APPEND files "${file}")
  endforeach()
  string(REPLACE ";" "|" assets "${ARGN}")
  add_custom_command(OUTPUT "${out}" DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/EmbedAssets.cmake"
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DNAMESPACE=${namespace}" "-DHEADER=${header}" "-DASSETS=${assets}"
            -P "${PROJECT_SOURCE_DIR}/cmake/EmbedAssets.cmake"
    COMMENT "Embedding the assets of HTML reports" VERBATIM)
endfunction()
