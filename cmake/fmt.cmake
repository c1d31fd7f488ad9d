# SPDX-License-Identifier: Apache-2.0
# lib::fmt is fmt with its implementation compiled once (fmt_impl.cc says why);
# STOPLOG_FMT_DEFINITIONS is what every source needs to be defined with it.
try_compile(STOPLOG_FMT_COMPILED
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/fmt_try.cc
          ${CMAKE_CURRENT_LIST_DIR}/fmt_impl.cc
  CXX_STANDARD 23 CXX_STANDARD_REQUIRED ON)
if(STOPLOG_FMT_COMPILED)
  set(STOPLOG_FMT_DEFINITIONS "")
  add_library(stoplog_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt_impl.cc)
else()
  set(STOPLOG_FMT_DEFINITIONS FMT_HEADER_ONLY)
  add_library(stoplog_fmt INTERFACE)
endif()
add_library(lib::fmt ALIAS stoplog_fmt)
