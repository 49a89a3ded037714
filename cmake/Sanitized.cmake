# The build type Sanitized: the unit tests and what they test, unoptimized, under AddressSanitizer and
# UndefinedBehaviorSanitizer, without the programs.
set(FABRICHECK_TESTS ON)
set(CMAKE_CXX_FLAGS_SANITIZED
  "-O0 -gline-tables-only -fsanitize=address,undefined -fno-sanitize-recover=all")

function(fabricheck_sanitized)
  set_property(DIRECTORY src/bench PROPERTY EXCLUDE_FROM_ALL ON)
  # Loops over whole arrays would take most of the time of the tests.
  set(loops ${PROJECT_SOURCE_DIR}/src/bench/stream/kernels.cpp
    ${PROJECT_SOURCE_DIR}/src/bench/harness/pattern.cpp)
  set_source_files_properties(${loops} DIRECTORY src/bench
    PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)
  # Reading these headers is half of the time to compile: it is done once, for all targets.
  target_precompile_headers(fabricheck_harness PRIVATE
    <algorithm> <filesystem> <fstream> <functional> <map> <optional> <set> <sstream> <string>
    <vector> <nlohmann/json.hpp>)
  foreach(folder src/bench tests/cpp)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    list(REMOVE_ITEM targets fabricheck_harness tests_main)
    foreach(target ${targets})
      target_precompile_headers(${target} REUSE_FROM fabricheck_harness)
    endforeach()
  endforeach()
endfunction()
cmake_language(DEFER CALL fabricheck_sanitized)
