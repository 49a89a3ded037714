# For builds that are not optimized: reading these headers is half of the time to compile them, and is
# done once for all targets, of host and sim for both. At -O1 and above it saves nothing.
function(fabricheck_precompile)
  set(folders src/bench)
  if(FABRICHECK_TESTS AND NOT FABRICHECK_RUNTIME STREQUAL "cpu")
    list(APPEND folders tests/cpp)
  endif()
  if(NOT FABRICHECK_PARTS)
    target_precompile_headers(fabricheck_harness PRIVATE
      <algorithm> <filesystem> <fstream> <functional> <map> <optional> <set> <sstream> <string>
      <vector> <nlohmann/json.hpp>)
  endif()
  foreach(folder ${folders})
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    list(REMOVE_ITEM targets fabricheck_build fabricheck_harness local_programs tests_main)
    list(FILTER targets EXCLUDE REGEX "_device$")
    foreach(target ${targets})
      if(FABRICHECK_PARTS)
        target_compile_options(${target} PRIVATE "SHELL:-include ${headers}")
      else()
        target_precompile_headers(${target} REUSE_FROM fabricheck_harness)
      endif()
    endforeach()
  endforeach()
endfunction()
# Where the runtime `cpu` has them; GCC takes what is precompiled beside this file.
set(headers ${FABRICHECK_PARTS}/src/bench/CMakeFiles/fabricheck_harness.dir/cmake_pch.hxx)
cmake_language(DEFER CALL fabricheck_precompile)
