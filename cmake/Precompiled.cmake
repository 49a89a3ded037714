# For builds that are not optimized: reading these headers is half of the time to compile them, and is
# done once for all targets. At -O1 and above it saves nothing.
function(fabricheck_precompile)
  target_precompile_headers(fabricheck_harness PRIVATE
    <algorithm> <filesystem> <fstream> <functional> <map> <optional> <set> <sstream> <string>
    <vector> <nlohmann/json.hpp>)
  set(folders src/bench)
  if(FABRICHECK_TESTS)
    list(APPEND folders tests/cpp)
  endif()
  foreach(folder ${folders})
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    list(REMOVE_ITEM targets fabricheck_harness local_programs tests_main)
    foreach(target ${targets})
      target_precompile_headers(${target} REUSE_FROM fabricheck_harness)
    endforeach()
  endforeach()
endfunction()
cmake_language(DEFER CALL fabricheck_precompile)
