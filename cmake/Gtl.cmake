# Cray MPICH moves buffers of devices only in a program that is linked with its GPU transport library
# (GTL) of that kind of device. Cray's cc adds it where a craype-accel module is loaded; a compiler of
# device code links by itself, so here it is named. Other MPIs need nothing of the kind.
set(FABRICHECK_GTL_DIR "" CACHE STRING
  "Folder of Cray MPICH's GPU transport library where it is not found; OFF: link without it")

# The GTL belongs to the release of Cray MPICH: PREFIX/gtl/lib beside PREFIX/ofi/gnu/12.3.
set(mpi_paths ${MPI_CXX_LIBRARIES} ${MPI_CXX_INCLUDE_DIRS})
if(NOT mpi_paths)
  # Cray's CC is the compiler itself and tells no paths.
  set(mpi_paths $ENV{CRAY_MPICH_DIR})
endif()
set(gtl_hints)
set(is_cray_mpich FALSE)
foreach(path ${mpi_paths})
  get_filename_component(path "${path}" REALPATH)
  if(path MATCHES "^(.*)/(ofi|ucx)/(aocc|amd|cray|crayclang|gnu|intel|nvidia)/[^/]+(/|$)")
    list(APPEND gtl_hints "${CMAKE_MATCH_1}/gtl/lib")
    set(is_cray_mpich TRUE)
  elseif(path MATCHES "/libmpi(ch)?_(aocc|amd|cray|crayclang|gnu|intel|nvidia)[_0-9]*[.](a|so)")
    set(is_cray_mpich TRUE)
  endif()
endforeach()

if(is_cray_mpich AND NOT FABRICHECK_GTL_DIR STREQUAL "OFF")
  if(FABRICHECK_RUNTIME STREQUAL "rocm")
    set(gtl_name mpi_gtl_hsa)
    set(device_prefix amd_)
    set(devices ${CMAKE_HIP_ARCHITECTURES})
  else()
    set(gtl_name mpi_gtl_cuda)
    set(device_prefix nvidia)
    set(devices ${CMAKE_CUDA_ARCHITECTURES})
  endif()
  if(FABRICHECK_GTL_DIR)
    set(gtl_hints ${FABRICHECK_GTL_DIR})
  else()
    # What the modules of the Cray programming environment set: a folder, and flags for a device.
    list(APPEND gtl_hints $ENV{CRAY_MPICH_ROOTDIR}/gtl/lib)
    foreach(device ${devices})
      string(REGEX REPLACE "[:-].*$" "" device "${device}")  # gfx90a:xnack+, 80-real
      string(REGEX REPLACE "^ *-L" "" folder "$ENV{PE_MPICH_GTL_DIR_${device_prefix}${device}}")
      list(APPEND gtl_hints ${folder})
    endforeach()
  endif()
  list(REMOVE_DUPLICATES gtl_hints)
  unset(gtl_library CACHE)  # searched each time: the MPI may be another one now
  find_library(gtl_library ${gtl_name} NO_DEFAULT_PATH PATHS ${gtl_hints})
  if(NOT gtl_library)
    list(JOIN gtl_hints ", " searched)
    message(FATAL_ERROR "The MPI is Cray MPICH, and its GPU transport library lib${gtl_name}.so is not "
      "in ${searched}: name its folder by -DFABRICHECK_GTL_DIR=..., or OFF for buffers of the host only")
  endif()
  message(STATUS "GPU transport library of Cray MPICH: ${gtl_library}")
  get_filename_component(gtl_folder "${gtl_library}" DIRECTORY)
  # No program calls it: a linker that drops unused libraries, as many do by default, would drop it.
  target_link_libraries(fabricheck_mpi INTERFACE
    "-Wl,--push-state,--no-as-needed,${gtl_library},-rpath,${gtl_folder},--pop-state")
endif()
