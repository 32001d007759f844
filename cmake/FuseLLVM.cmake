# Interface target `fuse_llvm`: headers and libraries of LLVM 22, C API only.
# By default the shared libLLVM; with -DFUSE_STATIC_LLVM=ON the component archives that the compiler
# uses, so that the result is one binary that needs no LLVM on the machine where it runs.
# LLVM's version file accepts only an exact major.minor, so the version is checked here.
find_package(LLVM CONFIG REQUIRED HINTS /usr/lib/llvm-22/lib/cmake/llvm)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "fusec: LLVM 22 is needed, found ${LLVM_VERSION} in ${LLVM_DIR}; set LLVM_DIR")
endif()

add_library(fuse_llvm INTERFACE)
target_include_directories(fuse_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(fuse_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
# LLVM_DEFINITIONS repeats -D_GNU_SOURCE, which our own flags set already.
list(FILTER fuse_llvm_definitions EXCLUDE REGEX "^-D_GNU_SOURCE")
target_compile_options(fuse_llvm INTERFACE ${fuse_llvm_definitions})

# The one name of this machine's back end, as the LLVMInitialize<NAME>* functions spell it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(FUSE_NATIVE_LLVM_TARGET X86)
  set(FUSE_OTHER_LLVM_TARGET AArch64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(FUSE_NATIVE_LLVM_TARGET AArch64)
  set(FUSE_OTHER_LLVM_TARGET X86)
else()
  message(FATAL_ERROR "fusec: no host back end for '${CMAKE_SYSTEM_PROCESSOR}' (X86 and AArch64 are known)")
endif()
foreach(target NVPTX ${FUSE_NATIVE_LLVM_TARGET})
  if(NOT target IN_LIST LLVM_TARGETS_TO_BUILD)
    message(FATAL_ERROR "fusec: this LLVM was built without the ${target} target")
  endif()
endforeach()
target_compile_definitions(fuse_llvm INTERFACE FUSE_NATIVE_LLVM_TARGET=${FUSE_NATIVE_LLVM_TARGET})
# Objects for the other kind of machine: where LLVM has it, and not in one binary with LLVM inside, which
# is for the machine where it runs.
if(FUSE_OTHER_LLVM_TARGET IN_LIST LLVM_TARGETS_TO_BUILD AND NOT FUSE_STATIC_LLVM)
  target_compile_definitions(fuse_llvm INTERFACE FUSE_OTHER_LLVM_TARGET=${FUSE_OTHER_LLVM_TARGET})
endif()

if(FUSE_STATIC_LLVM)
  if(NOT TARGET zstd::libzstd_shared)
    message(FATAL_ERROR "fusec: FUSE_STATIC_LLVM needs libzstd-dev (tools/setup installs it)")
  endif()
  llvm_map_components_to_libnames(fuse_llvm_libs
    NVPTX ${FUSE_NATIVE_LLVM_TARGET} passes analysis orcjit bitwriter irreader linker)
  target_link_libraries(fuse_llvm INTERFACE ${fuse_llvm_libs})
  # The archives are C++: whoever links them in C needs its run time, the unused parts dropped, and none
  # of their symbols in the interface of a shared library.
  target_link_libraries(fuse_llvm INTERFACE stdc++)
  target_link_options(fuse_llvm INTERFACE -Wl,--gc-sections -Wl,--exclude-libs,ALL)
else()
  if(NOT TARGET LLVM)
    message(FATAL_ERROR "fusec: libLLVM-22.so was not found; try -DFUSE_STATIC_LLVM=ON")
  endif()
  target_link_libraries(fuse_llvm INTERFACE LLVM)
endif()
