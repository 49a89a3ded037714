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
endfunction()
cmake_language(DEFER CALL fabricheck_sanitized)
