# fabricheck_runtime: the target that provides <hip/hip_runtime.h>, and FABRICHECK_DEVICE_LANGUAGE,
# the language of sources that hold kernels. Included, not a subdirectory: a language has to be
# enabled where the whole project sees it.
add_library(fabricheck_runtime INTERFACE)

# Of programs on a CPU only kernels are worth -O3 (fabricheck_device_sources): they become vector code.
# All else is mostly documents, and compiles unoptimized in half of the time. That code is the same on
# this machine and on a simulated node: the runtime `cpu` compiles it, and no program, for both. SMPI
# loads one copy of a program for each rank, so nothing of it may be one and the same in all copies.
set(code_of_both $<$<CONFIG:Release>:-O0> -fPIC $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)

if(FABRICHECK_RUNTIME STREQUAL "host")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  add_library(fabricheck_host_runtime STATIC src/runtime/cpu/errors.cpp
    src/runtime/host/machine.cpp src/runtime/host/runtime.cpp src/runtime/host/streams.cpp)
  target_include_directories(fabricheck_host_runtime PUBLIC src/runtime/cpu src/runtime/host)
  target_compile_definitions(fabricheck_host_runtime PUBLIC FABRICHECK_HOST_RUNTIME)
  target_link_libraries(fabricheck_host_runtime
    PUBLIC OpenMP::OpenMP_CXX Threads::Threads PRIVATE PkgConfig::HWLOC)
  target_link_libraries(fabricheck_runtime INTERFACE fabricheck_host_runtime)
  # -march=native is left to the user, as for a plain C loop.
  target_compile_options(fabricheck_runtime INTERFACE ${code_of_both})
  set(FABRICHECK_DEVICE_LANGUAGE CXX)

elseif(FABRICHECK_RUNTIME STREQUAL "sim")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  pkg_check_modules(SIMGRID REQUIRED IMPORTED_TARGET simgrid>=3.32)
  # What moves a copy is one table, which the simulated node obeys and the programs tell.
  add_library(fabricheck_sim_runtime STATIC src/bench/harness/copy_rules.cpp
    src/runtime/cpu/errors.cpp
    src/runtime/sim/machine.cpp src/runtime/sim/managed.cpp src/runtime/sim/messages.cpp
    src/runtime/sim/node.cpp src/runtime/sim/platform.cpp src/runtime/sim/runtime.cpp
    src/runtime/sim/streams.cpp)
  target_include_directories(fabricheck_sim_runtime PUBLIC src/bench src/runtime/cpu src/runtime/sim)
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _ "${SIMGRID_VERSION}")
  target_compile_definitions(fabricheck_sim_runtime PUBLIC FABRICHECK_SIM_RUNTIME PRIVATE
    FABRICHECK_SIMGRID_MAJOR=${CMAKE_MATCH_1} FABRICHECK_SIMGRID_MINOR=${CMAKE_MATCH_2})
  target_link_libraries(fabricheck_sim_runtime
    PUBLIC OpenMP::OpenMP_CXX nlohmann_json::nlohmann_json PkgConfig::SIMGRID)
  target_link_libraries(fabricheck_runtime INTERFACE fabricheck_sim_runtime)
  target_compile_options(fabricheck_sim_runtime PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_options(fabricheck_runtime INTERFACE ${code_of_both})
  set(FABRICHECK_DEVICE_LANGUAGE CXX)

elseif(FABRICHECK_RUNTIME STREQUAL "cpu")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_include_directories(fabricheck_runtime INTERFACE src/runtime/cpu)
  target_link_libraries(fabricheck_runtime INTERFACE OpenMP::OpenMP_CXX)
  target_compile_options(fabricheck_runtime INTERFACE ${code_of_both})
  set(FABRICHECK_DEVICE_LANGUAGE CXX)

elseif(FABRICHECK_RUNTIME STREQUAL "cuda")
  include(${CMAKE_CURRENT_LIST_DIR}/Architectures.cmake)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  target_include_directories(fabricheck_runtime INTERFACE src/runtime/cuda)
  target_link_libraries(fabricheck_runtime INTERFACE CUDA::cudart_static)
  target_compile_features(fabricheck_runtime INTERFACE cuda_std_17)
  set(FABRICHECK_DEVICE_LANGUAGE CUDA)

elseif(FABRICHECK_RUNTIME STREQUAL "rocm")
  include(${CMAKE_CURRENT_LIST_DIR}/Architectures.cmake)
  enable_language(HIP)
  find_package(hip REQUIRED)
  target_link_libraries(fabricheck_runtime INTERFACE hip::host)
  set(FABRICHECK_DEVICE_LANGUAGE HIP)

else()
  message(FATAL_ERROR "FABRICHECK_RUNTIME is '${FABRICHECK_RUNTIME}': choose rocm, cuda, host or sim")
endif()
