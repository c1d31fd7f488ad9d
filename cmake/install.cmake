# SPDX-License-Identifier: Apache-2.0
# cmake --install, and a .deb by `cpack` in the build tree: the program, manual
# pages, completions, the AppArmor profile and the documents, each where a
# distribution puts it.
include(GNUInstallDirs)

install(TARGETS stoplog RUNTIME)
install(FILES README.md CHANGELOG.md HACKING.md LICENSE
        DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")

# man/NAME.SECTION.scd -> NAME.SECTION.gz
find_program(SCDOC scdoc)
file(GLOB man_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.[15].scd)
set(man_pages "")
if(SCDOC AND man_sources)
  foreach(source ${man_sources})
    get_filename_component(page ${source} NAME_WLE)
    string(REGEX MATCH "[0-9]$" section ${page})
    set(out ${CMAKE_BINARY_DIR}/man/${page}.gz)
    # Through a file: the exit code of scdoc would be lost in a pipe.
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
      COMMAND ${SCDOC} < ${source} > ${CMAKE_BINARY_DIR}/man/${page}
      COMMAND gzip -9nf ${CMAKE_BINARY_DIR}/man/${page}
      DEPENDS ${source} VERBATIM)
    list(APPEND man_pages ${out})
    install(FILES ${out} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
  add_custom_target(man ALL DEPENDS ${man_pages})
elseif(man_sources)
  message(STATUS "no scdoc: the manual pages are not built (scripts/setup)")
endif()

# The files in completions/ are named as their shells want them.
foreach(pair "stoplog.bash|bash-completion/completions|stoplog"
             "stoplog.fish|fish/vendor_completions.d|stoplog.fish"
             "_stoplog|zsh/vendor-completions|_stoplog")
  string(REPLACE "|" ";" parts ${pair})
  list(GET parts 0 file)
  list(GET parts 1 directory)
  list(GET parts 2 name)
  if(EXISTS ${CMAKE_SOURCE_DIR}/completions/${file})
    install(FILES completions/${file} RENAME ${name}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/${directory})
  endif()
endforeach()

# AppArmor reads /etc/apparmor.d and nothing else; beneath another prefix the
# profile is put where it can be found and copied.
install(CODE "
  set(directory \"\${CMAKE_INSTALL_PREFIX}/etc/apparmor.d\")
  if(\"\${CMAKE_INSTALL_PREFIX}\" MATCHES \"^/usr(/local)?/?$\")
    set(directory /etc/apparmor.d)
  endif()
  file(INSTALL DESTINATION \"\${directory}\" TYPE FILE RENAME stoplog
       FILES \"${CMAKE_SOURCE_DIR}/packaging/apparmor\")")

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME stoplog)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The stoplog maintainers <stoplog@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION "A coding agent works in a copy-on-write view of
the workspace, its commands in a jail. Every write is held, shown as a patch,
and reaches the real tree only when a person approves it; it can be undone.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fuse3, git, less")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    "${CMAKE_SOURCE_DIR}/packaging/postinst"
    "${CMAKE_SOURCE_DIR}/packaging/postrm"
    "${CMAKE_SOURCE_DIR}/packaging/conffiles")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/package)
include(CPack)
