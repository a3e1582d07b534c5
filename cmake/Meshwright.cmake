option(MESHWRIGHT_UNITY "Compile eight files of a library at once: less work from scratch, more after a change of one file" OFF)

# Groups the files of a target that are compiled together. Files with `using namespace llvm` are kept apart from the
# others, because mlir has names that llvm has too.
function(meshwright_unity_groups target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(llvm 0)
  set(others 0)
  foreach(source ${ARGN})
    file(STRINGS ${source} found REGEX "^using namespace llvm;" LIMIT_COUNT 1)
    set(kind others)
    if(found)
      set(kind llvm)
    endif()
    math(EXPR batch "${${kind}} / 8")
    math(EXPR ${kind} "${${kind}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${kind}${batch})
  endforeach()
endfunction()

# meshwright_library(NAME sources... [DEPENDS targets...] [LINK targets...] [EXCEPTIONS])
#
# A static library over the shared libMLIR. All such libraries share one
# precompiled header, which halves the time of each translation unit; a library
# that wraps a package written with exceptions says EXCEPTIONS and goes without. With
# -DMESHWRIGHT_UNITY=ON eight files are compiled at once.
function(meshwright_library name)
  cmake_parse_arguments(ARG "EXCEPTIONS" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  # Generated headers of every dialect exist before anything compiles.
  add_dependencies(${name} MeshwrightHeaders ${ARG_DEPENDS})
  if(ARG_EXCEPTIONS)
    target_compile_options(${name} PRIVATE -fexceptions)
  else()
    target_precompile_headers(${name} REUSE_FROM MeshwrightPCH)
  endif()
  if(MESHWRIGHT_UNITY)
    meshwright_unity_groups(${name} ${ARG_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# meshwright_dialect(Train train) in dialects/Train: TrainOps.td and friends -> headers.
function(meshwright_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  list(LENGTH ARGN n)
  math(EXPR last "${n} - 1")
  foreach(i RANGE 0 ${last} 2)
    math(EXPR j "${i} + 1")
    list(GET ARGN ${i} file)
    list(GET ARGN ${j} options)
    separate_arguments(options)
    mlir_tablegen(${file} ${options} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR}/dialects
      ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/dialects)
  endforeach()
  add_public_tablegen_target(${target})
  add_dependencies(MeshwrightHeaders ${target})
endfunction()

# A tool whose plugins use classes of the dialects: it has all of them, and exports them.
function(meshwright_loads_plugins tool)
  set_target_properties(${tool} PROPERTIES ENABLE_EXPORTS ON)
  foreach(dialect MeshwrightTrain MeshwrightDist MeshwrightExec)
    target_link_options(${tool} PRIVATE
      "LINKER:--whole-archive,$<TARGET_FILE:${dialect}>,--no-whole-archive")
  endforeach()
endfunction()
