# The CUDA module, libassay-cuda.so. Each room adds its sources with assay_cuda_sources(); nvcc compiles them for the
# module, and the host compiler compiles them again for the emulation that tests run on (tests/emulation).
set(ASSAY_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "Compute capabilities that the CUDA module is built for")

if(ASSAY_WITH_CUDA)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}" CACHE FILEPATH "nvcc")
  set(CMAKE_CUDA_ARCHITECTURES ${ASSAY_CUDA_ARCHITECTURES})
  if(NOT CMAKE_CUDA_COMPILER_LAUNCHER AND CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE}")
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc supports C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)

  add_library(assay_cuda_flags INTERFACE)
  target_compile_options(assay_cuda_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-Wshadow,-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -Wno-deprecated-gpu-targets>)
  if(ASSAY_WERROR)
    target_compile_options(assay_cuda_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
  endif()
  list(JOIN ASSAY_CUDA_ARCHITECTURES ", " architectures)
  target_compile_definitions(assay_cuda_flags INTERFACE
    ASSAY_CUDA_ARCHITECTURES="${architectures}"
    "$<$<COMPILE_LANGUAGE:CUDA>:ASSAY_HOST_DEVICE=__host__ __device__>")
  target_include_directories(assay_cuda_flags INTERFACE "${PROJECT_SOURCE_DIR}")
  target_include_directories(assay_cuda_flags SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  foreach(library CUDNN NCCL)
    if(ASSAY_WITH_${library})
      target_include_directories(assay_cuda_flags SYSTEM INTERFACE ${${library}_INCLUDE_DIR})
    endif()
  endforeach()
  if(ASSAY_WITH_CUDNN)
    target_include_directories(assay_cuda_flags SYSTEM INTERFACE ${CUDNN_FRONTEND_INCLUDE_DIR})
  endif()
  if(ASSAY_CUPTI_INCLUDE_DIR)
    target_include_directories(assay_cuda_flags SYSTEM INTERFACE ${ASSAY_CUPTI_INCLUDE_DIR})
  endif()
endif()

# Adds sources of the current folder to the CUDA module. HARDWARE: sources that need a real device and its libraries
# (cuDNN), which the emulation replaces.
function(assay_cuda_sources)
  if(NOT ASSAY_WITH_CUDA)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "HARDWARE" ${ARGN})
  foreach(kind UNPARSED_ARGUMENTS HARDWARE)
    foreach(source ${arg_${kind}})
      set_property(GLOBAL APPEND PROPERTY ASSAY_CUDA_${kind} "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    endforeach()
  endforeach()
endfunction()

# Called once all rooms have added their sources.
function(assay_cuda_module)
  if(NOT ASSAY_WITH_CUDA)
    return()
  endif()
  get_property(shared GLOBAL PROPERTY ASSAY_CUDA_UNPARSED_ARGUMENTS)
  get_property(hardware GLOBAL PROPERTY ASSAY_CUDA_HARDWARE)
  assay_module(cuda SOURCES ${shared} ${hardware} LINKS assay_cuda_flags assay_ops assay_comm assay_version
    ${ASSAY_CUDA_LIBRARIES})
  target_link_options(assay_cuda_module PRIVATE LINKER:--no-undefined)  # report missing symbols now, not when the module is loaded
endfunction()
