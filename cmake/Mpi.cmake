# fabricheck_mpi: the target that provides <mpi.h>, and fabricheck_rank_program(), which adds a
# program of several ranks. The MPI is the one whose mpicxx is found first, or the one that MPI_HOME
# or MPI_CXX_COMPILER names; of the runtime sim it is SMPI, in which a program is a module.
add_library(fabricheck_mpi INTERFACE)

if(FABRICHECK_RUNTIME STREQUAL "sim")
  find_path(FABRICHECK_SMPI_INCLUDE mpi.h REQUIRED NO_DEFAULT_PATH
    HINTS ${SIMGRID_INCLUDEDIR}/smpi ${SIMGRID_PREFIX}/include/smpi
    DOC "Folder of the mpi.h of SimGrid's SMPI")
  target_include_directories(fabricheck_mpi SYSTEM INTERFACE ${FABRICHECK_SMPI_INCLUDE})
  target_link_libraries(fabricheck_mpi INTERFACE PkgConfig::SIMGRID)
  # SMPI loads one copy of a program for each rank: nothing may be one and the same in all copies.
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set_target_properties(fabricheck_sim_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(fabricheck_sim_runtime PUBLIC $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  # The platform of `smpirun -platform`.
  add_library(fabricheck_node MODULE src/runtime/sim/plugin.cpp)
  target_link_libraries(fabricheck_node PRIVATE fabricheck_sim_runtime)
  set_target_properties(fabricheck_node PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  install(TARGETS fabricheck_node LIBRARY DESTINATION bin)
else()
  set(MPI_CXX_SKIP_MPICXX ON)  # the C functions only
  # CMake prefers the MPI whose mpiexec is on the PATH, and Cray MPICH has none: what MPI_HOME names
  # is taken by its mpicxx, or without one by its header and library.
  if(NOT MPI_HOME)
    set(MPI_HOME $ENV{MPI_HOME})
  endif()
  if(MPI_HOME AND NOT MPI_CXX_COMPILER)
    find_program(MPI_CXX_COMPILER NAMES mpicxx mpic++ PATHS ${MPI_HOME}/bin NO_DEFAULT_PATH)
    if(NOT MPI_CXX_COMPILER)
      find_path(MPI_CXX_COMPILER_INCLUDE_DIRS mpi.h PATHS ${MPI_HOME}/include NO_DEFAULT_PATH)
      find_library(MPI_mpi_LIBRARY NAMES mpi mpich PATHS ${MPI_HOME}/lib NO_DEFAULT_PATH)
      if(NOT MPI_CXX_COMPILER_INCLUDE_DIRS OR NOT MPI_mpi_LIBRARY)
        message(FATAL_ERROR "MPI_HOME is '${MPI_HOME}', where there is neither bin/mpicxx nor "
          "include/mpi.h with lib/libmpi")
      endif()
      set(MPI_CXX_LIB_NAMES mpi)
    endif()
  endif()
  find_package(MPI REQUIRED COMPONENTS CXX)
  target_link_libraries(fabricheck_mpi INTERFACE MPI::MPI_CXX)
  if(FABRICHECK_RUNTIME MATCHES "^(rocm|cuda)$")
    include(${CMAKE_CURRENT_LIST_DIR}/Gtl.cmake)
  endif()
endif()

# Adds a program of several ranks: fabricheck_rank_program(NAME SOURCE [LIBRARY...])
function(fabricheck_rank_program name source)
  if(FABRICHECK_RUNTIME STREQUAL "sim")
    add_library(${name} MODULE ${source})
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ""
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    # A library for smpirun, but a program by its place and by who may execute it.
    install(TARGETS ${name} LIBRARY DESTINATION bin PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
      GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  else()
    add_executable(${name} ${source})
    install(TARGETS ${name} RUNTIME)
  endif()
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)  # the source may be an object
  target_link_libraries(${name} PRIVATE fabricheck_ranks ${ARGN})
endfunction()
