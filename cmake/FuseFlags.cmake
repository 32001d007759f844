# Interface target `fuse_flags`: the warnings and sanitizers of our own code.
# Generated scanner and parser live in a target that links `fuse_flags_generated` instead.
add_library(fuse_flags INTERFACE)
target_include_directories(fuse_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(fuse_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wstrict-prototypes;-Wmissing-prototypes;-Wvla>
  $<$<AND:$<BOOL:${FUSE_WERROR}>,$<COMPILE_LANGUAGE:C>>:-Werror>)
# What GCC guesses from optimised code is often wrong: worth a look, not a broken build.
target_compile_options(fuse_flags INTERFACE
  $<$<AND:$<NOT:$<CONFIG:Debug>>,$<C_COMPILER_ID:GNU>>:-Wno-error=maybe-uninitialized;-Wno-error=format-truncation>)
target_compile_definitions(fuse_flags INTERFACE _GNU_SOURCE $<$<CONFIG:Debug>:FUSE_DEBUG=1>)

add_library(fuse_flags_generated INTERFACE)
target_include_directories(fuse_flags_generated INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(fuse_flags_generated INTERFACE _GNU_SOURCE)

if(FUSE_SANITIZE)
  foreach(t fuse_flags fuse_flags_generated)
    target_compile_options(${t} INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                          -fno-omit-frame-pointer)
    target_link_options(${t} INTERFACE -fsanitize=address,undefined)
  endforeach()
endif()

if(FUSE_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "fusec: FUSE_FUZZ needs clang: -DCMAKE_C_COMPILER=clang-14")
  endif()
  foreach(t fuse_flags fuse_flags_generated)
    target_compile_options(${t} INTERFACE -O1 -g -fsanitize=fuzzer-no-link,address,undefined
                                          -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${t} INTERFACE -fsanitize=address,undefined)
  endforeach()
endif()
