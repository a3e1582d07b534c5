# What `cmake --install build --prefix P` and the Debian package hold:
#
#   bin                 tools
#   lib/meshwright      what executables link, which the compiler finds beside its own folder
#   include             headers of the dialects and of Meshwright, for plugins
#   lib/cmake           find_package(Meshwright)
#   share               manual pages, completions, settings of editors, examples
#
# Nothing names the prefix, so the folder can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(READ include/meshwright/runtime/Version.h version)
string(REGEX MATCH "version\\[\\] = \"([0-9.]+)\"" version "${version}")
set(version ${CMAKE_MATCH_1})

install(TARGETS meshwright meshwright-opt meshwright-interpret meshwright-lsp-server
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The runtime for GPUs is built where CUDA's headers are.
install(FILES ${CMAKE_BINARY_DIR}/runtime/libmeshwright_runtime.a ${CMAKE_BINARY_DIR}/runtime/link.txt
  DESTINATION lib/meshwright)
install(FILES ${CMAKE_BINARY_DIR}/runtime/libmeshwright_runtime_cuda.a ${CMAKE_BINARY_DIR}/runtime/link_cuda.txt
  DESTINATION lib/meshwright OPTIONAL)

install(DIRECTORY include/meshwright DESTINATION include FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(DIRECTORY dialects/ DESTINATION include/meshwright/dialects
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def")
foreach(dialect Train Dist Exec)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/dialects/${dialect} DESTINATION include/meshwright/dialects
    FILES_MATCHING PATTERN "*.inc" PATTERN CMakeFiles EXCLUDE)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/dialects/Collectives.td DESTINATION include/meshwright/dialects)

set(package lib/cmake/Meshwright)
configure_package_config_file(cmake/MeshwrightConfig.cmake.in ${CMAKE_BINARY_DIR}/install/MeshwrightConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR)
# Plugins are for one version: there is no stable ABI.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/install/MeshwrightConfigVersion.cmake
  VERSION ${version} COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/install/MeshwrightConfig.cmake ${CMAKE_BINARY_DIR}/install/MeshwrightConfigVersion.cmake
  DESTINATION ${package})

# The compiler writes what is made of its tables of commands and flags.
install(CODE "
  set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share\")
  execute_process(COMMAND $<TARGET_FILE:meshwright> manual -o \"\${to}/man/man1\" COMMAND_ERROR_IS_FATAL ANY)
  foreach(file bash:bash-completion/completions/meshwright zsh:zsh/vendor-completions/_meshwright
               fish:fish/vendor_completions.d/meshwright.fish)
    string(REPLACE \":\" \";\" parts \${file})
    list(GET parts 0 shell)
    list(GET parts 1 name)
    get_filename_component(folder \"\${to}/\${name}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND $<TARGET_FILE:meshwright> completion \${shell} OUTPUT_FILE \"\${to}/\${name}\"
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(DIRECTORY tools/meshwright-lsp-server/editors DESTINATION share/meshwright)
install(DIRECTORY examples/plugin DESTINATION share/meshwright/examples)
install(FILES examples/gpt2-bytes.json examples/llama-bytes.json DESTINATION share/meshwright/examples)
install(FILES README.md LICENSE DESTINATION share/doc/meshwright)

# cpack -G DEB --config build/CPackConfig.cmake
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME meshwright)
set(CPACK_PACKAGE_VERSION ${version})
set(CPACK_PACKAGE_CONTACT "The authors of Meshwright")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Ahead-of-time parallelizing compiler for transformer training")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# Libraries of the tools, by dpkg-shlibdeps; and what executables are linked with, which are files
# of development packages. libMLIR's package has no symbols file, so it is named.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS
  "libmlir-${LLVM_VERSION_MAJOR}, g++, libopenblas-pthread-dev, libutf8proc-dev, libpcre2-dev")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "lld-${LLVM_VERSION_MAJOR}, openmpi-bin, libhwloc15")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "clang-${LLVM_VERSION_MAJOR}, cmake, ninja-build, libmlir-${LLVM_VERSION_MAJOR}-dev, mlir-${LLVM_VERSION_MAJOR}-tools, llvm-${LLVM_VERSION_MAJOR}-dev, llvm-${LLVM_VERSION_MAJOR}-tools")
include(CPack)
