# One function for each kind of target, so that folders only name their files and what they stand on.

# A static library of one room: assay_room(NAME SOURCES a.cpp ... LINKS other ...)
function(assay_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC assay_flags ${arg_LINKS})
endfunction()

# A backend module, libassay-NAME.so, loaded by workers at run time.
function(assay_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(assay_${name}_module MODULE ${arg_SOURCES})
  target_link_libraries(assay_${name}_module PRIVATE assay_flags ${arg_LINKS})
  set_target_properties(assay_${name}_module PROPERTIES OUTPUT_NAME assay-${name} PREFIX lib)
  install(TARGETS assay_${name}_module LIBRARY DESTINATION lib/assay)
endfunction()

# A GoogleTest program whose tests ctest lists one by one, with the label `unit`.
function(assay_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE assay_flags GTest::gtest_main GTest::gmock ${arg_LINKS})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES PROPERTIES LABELS unit)
  add_dependencies(unit_tests ${name})
endfunction()
