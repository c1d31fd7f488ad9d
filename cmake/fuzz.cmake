# SPDX-License-Identifier: Apache-2.0
# libFuzzer targets: tests/fuzz/ROOM_WHAT_fuzz.cc becomes the program
# fuzz/ROOM_WHAT_fuzz, linked with that room. A line "// fuzz: sources A.cc B.cc"
# names the few files that it needs instead (with base): instrumented, a whole
# room takes minutes to compile. Everything is built with the coverage that the
# fuzzer steers by (see stoplog_flags).
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "STOPLOG_FUZZ needs clang 19: cmake --preset fuzz")
endif()
file(GLOB fuzzers CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
# zlib: git's loose objects are deflated.
set(STOPLOG_FUZZ_LIBS lib::git2 lib::z)
add_custom_target(fuzzers)
foreach(source ${fuzzers})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX MATCH "^[a-z]+" room ${name})
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  stoplog_flags(${name})
  file(STRINGS ${source} needed REGEX "^// fuzz: sources ")
  if(needed)
    string(REPLACE "// fuzz: sources " "" needed "${needed}")
    string(REPLACE " " ";" needed "${needed}")
    list(TRANSFORM needed PREPEND ${CMAKE_SOURCE_DIR}/)
    target_sources(${name} PRIVATE ${needed})
    foreach(visible base fs jail snapshot diff gate draft cli)
      target_include_directories(${name} PRIVATE
        ${CMAKE_BINARY_DIR}/include/${visible})
    endforeach()
    target_include_directories(${name} PRIVATE ${FUSE3_INCLUDE_DIRS})
    set(room base)
  endif()
  target_link_libraries(${name} PRIVATE ${room} ${STOPLOG_FUZZ_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endforeach()
