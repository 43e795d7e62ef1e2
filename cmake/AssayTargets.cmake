# One function per kind of target, so that folders only list their files and what they link.

# Compiles the sources of a target in batches of at most 32: templates are then instantiated once per batch, not once per
# source, which takes a quarter of the time.
function(assay_batch target)
  if(NOT ASSAY_BATCHES)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 32)
endfunction()

# A static library of one room: assay_room(NAME [UNTIMED] [COMPUTES] SOURCES a.cpp ... LINKS other ...)
# UNTIMED: nothing of it runs inside a timed window, so it is compiled with -O1, in two thirds of the time.
# COMPUTES: its tests compute for long, so it is optimized with sanitizers too; other rooms are then compiled with -O0, in
# two thirds of the time.
function(assay_room name)
  cmake_parse_arguments(arg "UNTIMED;COMPUTES" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC assay_flags ${arg_LINKS})
  set_target_properties(${name} PROPERTIES ASSAY_CASTS_MEMORY "${ASSAY_CASTS_MEMORY}" ASSAY_UNTIMED "${arg_UNTIMED}")
  if(ASSAY_SANITIZE AND NOT arg_COMPUTES)
    target_compile_options(${name} PRIVATE -O0)
  elseif(arg_UNTIMED)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  assay_batch(${name})
endfunction()

# The instruction sets that kernels are compiled for, weakest first, and each one's flags.
set(ASSAY_ISAS generic)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND ASSAY_ISAS avx2 avx512 avx512_bf16)
  set(ASSAY_ISA_FLAGS_avx2 -mavx2 -mfma)
  # g++ 12 warns about the undefined vectors in its own headers.
  set(ASSAY_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
      $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  set(ASSAY_ISA_FLAGS_avx512_bf16 ${ASSAY_ISA_FLAGS_avx512} -mavx512bf16)
  # With sanitizers kernels take longest of all to compile, and those that this CPU lacks no test could run.
  if(ASSAY_SANITIZE AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
    foreach(isa avx2 avx512f avx512_bf16)
      if(NOT "${cpu_flags} " MATCHES " ${isa} ")
        string(REPLACE avx512f avx512 isa ${isa})
        list(REMOVE_ITEM ASSAY_ISAS ${isa})
      endif()
    endforeach()
  endif()
endif()

# With g++ 14, the stack that detects use after return does not align 64-byte vectors.
function(assay_keeps_vectors_on_stack target)
  if(ASSAY_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE --param=asan-use-after-return=0)
  endif()
endfunction()

# Adds kernels to a room, each source compiled once per instruction set (harness/device/cpu/kernels.h says how to write
# one): assay_kernels(ROOM a_kernels.cpp ...)
function(assay_kernels room)
  foreach(isa ${ASSAY_ISAS})
    set(objects ${room}_${isa})
    add_library(${objects} OBJECT ${ARGN})
    set_target_properties(${objects} PROPERTIES ASSAY_CASTS_MEMORY ON)
    target_link_libraries(${objects} PRIVATE $<TARGET_PROPERTY:${room},INTERFACE_LINK_LIBRARIES>)
    target_compile_definitions(${objects} PRIVATE
      ASSAY_ISA=${isa} ASSAY_ISA_HEADER="harness/device/cpu/vector/native_${isa}.h"
      "ASSAY_HOST_DEVICE=[[gnu::always_inline]]")
    target_compile_options(${objects} PRIVATE -fno-math-errno -fno-trapping-math ${ASSAY_ISA_FLAGS_${isa}})
    assay_keeps_vectors_on_stack(${objects})
    target_sources(${room} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()

# A backend module, libassay-NAME.so, loaded by workers at run time.
function(assay_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(assay_${name}_module MODULE ${arg_SOURCES})
  target_link_libraries(assay_${name}_module PRIVATE assay_flags ${arg_LINKS})
  set_target_properties(assay_${name}_module PROPERTIES OUTPUT_NAME assay-${name} PREFIX lib)
  install(TARGETS assay_${name}_module LIBRARY DESTINATION lib/assay)
  set_property(GLOBAL APPEND PROPERTY ASSAY_MODULES assay_${name}_module)
endfunction()

# How many of ctest's slots a test takes. `./dev test` has two per core and two more, so that tests that mostly wait (for
# hosts, launchers, timeouts) run next to one computing test per core, or next to one test that needs all cores.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
set(ASSAY_PLACES_WAITING 1)
set(ASSAY_PLACES_COMPUTING 2)
math(EXPR ASSAY_PLACES_EVERY_CORE "2 * ${cores}")

# Test code is compiled with -O0: the code under test is compiled as it is shipped.
function(assay_test_code target)
  target_compile_options(${target} PRIVATE -O0)
endfunction()

# A GoogleTest program whose tests ctest lists one by one, with the label `unit`. WHOLE makes them one ctest entry: for
# hundreds of small tests, each of which would otherwise start a process and load a backend. With sanitizers all are, as
# starting takes longer than most tests do. SEPARATE: its sources share local names, so each is compiled by itself.
# With ASSAY_UNIT_TESTS=TIMED, a program that is UNTIMED, or whose rooms all are, is built on request only and not listed.
# SIMULATION: its figures are those of thousands of simulated runs, so it runs without sanitizers only, which see the same
# code in other tests.
function(assay_test name)
  cmake_parse_arguments(arg "WHOLE;SEPARATE;UNTIMED;SIMULATION" "" "SOURCES;LINKS;ENVIRONMENT" ${ARGN})
  if(arg_SIMULATION AND ASSAY_SANITIZE)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  if(NOT arg_SEPARATE)
    assay_batch(${name})
  endif()
  target_link_libraries(${name} PRIVATE assay_flags GTest::gtest_main GTest::gmock ${arg_LINKS})
  assay_test_code(${name})
  set(untimed ${arg_LINKS})
  foreach(link ${arg_LINKS})
    set(link_untimed OFF)
    if(TARGET ${link})
      get_target_property(link_untimed ${link} ASSAY_UNTIMED)
    endif()
    if(NOT link_untimed)
      set(untimed "")
    endif()
  endforeach()
  if((untimed OR arg_UNTIMED) AND NOT arg_SIMULATION AND ASSAY_UNIT_TESTS STREQUAL TIMED)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  set(environment "")
  if(arg_ENVIRONMENT)
    set(environment ENVIRONMENT "${arg_ENVIRONMENT}")
  endif()
  if(arg_WHOLE OR ASSAY_SANITIZE)
    list(LENGTH arg_SOURCES sources)  # ctest begins with those of most cost, as a long one should not be the last
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS unit PROCESSORS ${ASSAY_PLACES_COMPUTING} COST ${sources} ${environment})
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
      PROPERTIES LABELS unit PROCESSORS ${ASSAY_PLACES_COMPUTING} ${environment})
  endif()
  add_dependencies(unit_tests ${name})
endfunction()

# Fails the configuration if a room links one of the others, directly or through rooms that it links:
# assay_must_not_link(ROOM OTHER...)
function(assay_must_not_link room)
  set(seen "")
  set(pending ${room})
  while(pending)
    list(POP_FRONT pending target)
    if(NOT TARGET ${target} OR target IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    foreach(link IN LISTS links)
      string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
      if(link IN_LIST ARGN)
        message(FATAL_ERROR "${room} must not link ${link}; ${target} does")
      endif()
      list(APPEND pending ${link})
    endforeach()
  endwhile()
endfunction()
