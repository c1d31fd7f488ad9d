# SPDX-License-Identifier: Apache-2.0
# A room is one static library. A room sees the headers of the rooms that it
# names and of no others: each room's headers are reached through a directory
# of their own (build/include/ROOM/ROOM -> source), so a wrong include fails to
# build instead of being found by accident.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# What Debian ships as .a is linked statically: 39 shared libraries cost 5.5 ms
# at every start, as long as the whole of bubblewrap.
function(stoplog_static_lib target name)
  find_library(STOPLOG_LIB_${name} NAMES lib${name}.a ${name} REQUIRED)
  if(NOT TARGET ${target})
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION ${STOPLOG_LIB_${name}})
    set_property(GLOBAL APPEND PROPERTY STOPLOG_LIBS ${STOPLOG_LIB_${name}})
  endif()
endfunction()

stoplog_static_lib(lib::xxhash xxhash)
stoplog_static_lib(lib::zstd zstd)
stoplog_static_lib(lib::crypto crypto)
stoplog_static_lib(lib::seccomp seccomp)
stoplog_static_lib(lib::cap cap)
stoplog_static_lib(lib::fuse3 fuse3)
stoplog_static_lib(lib::ncursesw ncursesw)
stoplog_static_lib(lib::tinfo tinfo)
stoplog_static_lib(lib::z z)
pkg_check_modules(FUSE3 REQUIRED fuse3)
set_target_properties(lib::fuse3 PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${FUSE3_INCLUDE_DIRS}"
  INTERFACE_LINK_LIBRARIES "Threads::Threads;dl")
set_target_properties(lib::ncursesw PROPERTIES
  INTERFACE_LINK_LIBRARIES "lib::tinfo")

include(${CMAKE_CURRENT_LIST_DIR}/fmt.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/git2.cmake)

set(STOPLOG_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    -Wold-style-cast -Wimplicit-fallthrough
    # GCC 12 counts a designated initialiser that relies on defaults as missing.
    -Wno-missing-field-initializers)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION
   VERSION_LESS 13)
  # With -O3 GCC 12 sees std::string + std::string copy onto itself (bug 105651).
  list(APPEND STOPLOG_WARNINGS $<$<CONFIG:Release>:-Wno-restrict>)
endif()

function(stoplog_flags target)
  target_compile_options(${target} PRIVATE ${STOPLOG_WARNINGS})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE
    ${STOPLOG_FMT_DEFINITIONS}
    STOPLOG_VERSION="${PROJECT_VERSION}")
  if(STOPLOG_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(STOPLOG_SANITIZE)
    # The instrumentation hides initialisations from GCC's analysis.
    target_compile_options(${target} PRIVATE -fsanitize=${STOPLOG_SANITIZE}
      -fno-omit-frame-pointer
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PRIVATE -fsanitize=${STOPLOG_SANITIZE})
  else()
    # as-needed: g++ asks for libm, and nothing here uses it.
    # Wholly static is another way to be linked: -static-libstdc++ would ask for
    # a shared C library in the end.
    target_link_options(${target} PRIVATE
      $<IF:$<BOOL:$<TARGET_PROPERTY:STATIC_PIE>>,-static-pie,-static-libstdc++>
      -static-libgcc -Wl,--as-needed
      -Wl,--wrap=OPENSSL_cpuid_setup)  # base/hash_speed.h
  endif()
endfunction()

# stoplog_room(NAME [ROOMS room...] [LIBS lib...])
function(stoplog_room name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.cc)
  if(STOPLOG_FUZZ AND STOPLOG_FUZZ_${name})
    list(TRANSFORM STOPLOG_FUZZ_${name} REPLACE "(.+)"
         "${CMAKE_SOURCE_DIR}/${name}/\\1.cc" OUTPUT_VARIABLE sources)
  endif()
  set(include ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${name} ${include}/${name} SYMBOLIC)
  if(sources)
    add_library(${name} STATIC ${sources})
    stoplog_flags(${name})
    target_include_directories(${name} PUBLIC ${include})
    target_link_libraries(${name} PUBLIC ${ROOM_ROOMS} ${ROOM_LIBS})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${include})
    target_link_libraries(${name} INTERFACE ${ROOM_ROOMS} ${ROOM_LIBS})
  endif()
endfunction()
