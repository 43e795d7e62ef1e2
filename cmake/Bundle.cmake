# Install script of `./dev package`: beside what `cmake --install` puts there, all libraries that the program, its
# modules (PROGRAMS, MODULES) and the BLAS libraries that it loads (BLAS) need, with their licences.
# What belongs to a host is left to it: MPI, and NVIDIA's driver and libraries.
cmake_policy(VERSION 3.25)
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAMS} MODULES ${MODULES} LIBRARIES ${BLAS}
  RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^libmpi" "^libopen-(rte|pal)" "^lib(cu|nccl|nv)")
if(missing)
  message(FATAL_ERROR "libraries not found: ${missing}")
endif()
set(glibc "^(ld-linux.*|lib(c|m|mvec|pthread|dl|rt|resolv|util|anl))\\.so")
foreach(library IN LISTS found BLAS)
  get_filename_component(name "${library}" NAME)
  get_filename_component(folder "${library}" DIRECTORY)
  get_filename_component(folder "${folder}" NAME)
  set(place lib)
  if(name MATCHES "${glibc}")
    set(place lib/glibc)   # used where the host's is older (cli/launcher.cpp)
  elseif(library IN_LIST BLAS)
    set(place lib/${folder})   # as on Debian, where all builds of a BLAS have one name
  endif()
  file(INSTALL DESTINATION "${root}/${place}" USE_SOURCE_PERMISSIONS FOLLOW_SYMLINK_CHAIN TYPE SHARED_LIBRARY FILES "${library}")
  file(REAL_PATH "${library}" real)
  get_filename_component(copy "${real}" NAME)
  string(APPEND carried "${place}/${copy}\t${real}\n")
  list(APPEND files "${real}" "${library}")
endforeach()

# Debian keeps a licence file for each package; a wheel brings its own below share/doc.
execute_process(COMMAND dpkg-query -S ${files} OUTPUT_VARIABLE owners ERROR_QUIET)
string(REGEX MATCHALL "(^|\n)[^:\n ]+" packages "${owners}")
set(compiled libcli11-dev nlohmann-json3-dev libjs-chart.js libboost-dev libarchive-dev)   # compiled into the program
list(APPEND packages ${compiled} libc6-dev)   # the launcher holds a C library
list(TRANSFORM packages STRIP)
list(REMOVE_DUPLICATES packages)
foreach(package IN LISTS packages)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    file(INSTALL DESTINATION "${root}/share/doc/${package}" TYPE FILE FOLLOW_SYMLINK_CHAIN FILES "/usr/share/doc/${package}/copyright")
  endif()
endforeach()
foreach(library IN LISTS found)
  get_filename_component(folder "${library}" DIRECTORY)
  file(GLOB licences "${folder}/../share/doc/*/LICENSE")
  if(licences AND NOT folder MATCHES "^/(usr/)?lib")
    file(INSTALL DESTINATION "${root}/share/doc" TYPE DIRECTORY FILES "${folder}/../share/doc/")
  endif()
endforeach()
file(INSTALL DESTINATION "${root}" TYPE FILE FILES "${CMAKE_CURRENT_LIST_DIR}/../LICENSE")

# What tools/package/pack.py lists: beside the package, not in it.
foreach(package IN LISTS compiled)
  string(APPEND carried "bin/assay\t${package}\n")
endforeach()
string(APPEND carried "assay\tlibc6-dev\n")
file(WRITE "${root}.carried" "${carried}")

# The program's and the modules' paths to libraries name folders of this machine. All libraries of a package are in its own
# folder, which the launcher names; the host's lie where its loader looks, or in a toolkit.
file(GLOB modules "${root}/lib/assay/*.so")
foreach(file IN LISTS modules ITEMS "${root}/bin/assay")
  unset(folders)
  file(READ_ELF "${file}" RUNPATH folders)
  string(REPLACE ":" ";" kept "${folders}")
  list(FILTER kept INCLUDE REGEX "^/(usr|opt)/")
  list(JOIN kept ":" kept)
  if(folders)
    file(RPATH_SET FILE "${file}" NEW_RPATH "${kept}")
  endif()
endforeach()
