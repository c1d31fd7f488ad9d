# SPDX-License-Identifier: Apache-2.0
# libFuzzer targets: tests/fuzz/ROOM_WHAT_fuzz.cc becomes the program
# fuzz/ROOM_WHAT_fuzz, linked with that room. Everything is built with the
# coverage instrumentation that the fuzzer steers by (see stoplog_flags).
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "STOPLOG_FUZZ needs clang 19: cmake --preset fuzz")
endif()
file(GLOB fuzzers CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
add_custom_target(fuzzers)
foreach(source ${fuzzers})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX MATCH "^[a-z]+" room ${name})
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  stoplog_flags(${name})
  target_link_libraries(${name} PRIVATE ${room})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endforeach()
