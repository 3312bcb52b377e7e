# One static library per folder, linked only as the arrows of docs/architecture.md say.

function(folder_flags target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wswitch-enum -Werror)
  # g++ 12 reports overlapping copies inside std::string that cannot happen; clang 14 does not know the flag.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  # Under sanitizers its flow analysis takes every moved std::function for uninitialized; the other builds keep the warning.
  if(SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
endfunction()

function(folder_library folder)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${folder}.cc "")
    set(sources ${CMAKE_BINARY_DIR}/empty_${folder}.cc)
  endif()
  add_library(${folder} STATIC ${sources})
  folder_flags(${folder})
  target_link_libraries(${folder} PUBLIC ${ARG_DEPS})
  if(folder STREQUAL base)
    target_precompile_headers(base PRIVATE ${CMAKE_SOURCE_DIR}/base/pch.h)
  else()
    target_precompile_headers(${folder} REUSE_FROM base)
  endif()
endfunction()

# folder_test(NAME base DEPS base): one Catch2 program from tests/<NAME>/*.cc.
function(folder_test)
  cmake_parse_arguments(ARG "" "NAME" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${ARG_NAME}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${ARG_NAME} ${sources})
  folder_flags(test_${ARG_NAME})
  target_precompile_headers(test_${ARG_NAME} REUSE_FROM base)
  target_link_libraries(test_${ARG_NAME} PRIVATE catch_main ${ARG_DEPS})
  add_dependencies(test_${ARG_NAME} landlock-run call-init)
  add_test(NAME unit.${ARG_NAME} COMMAND test_${ARG_NAME})
  set_tests_properties(unit.${ARG_NAME} PROPERTIES TIMEOUT 300)
endfunction()

# Every file named, or below a folder named, becomes a std::string_view assets::<file_name_with_underscores>
# declared in the generated assets.h. Text the product needs at run time is inside the binary.
function(embed_assets target)
  set(files)
  foreach(item ${ARGN})
    if(IS_DIRECTORY ${item})
      file(GLOB found CONFIGURE_DEPENDS ${item}/*)
      list(APPEND files ${found})
    else()
      list(APPEND files ${item})
    endif()
  endforeach()
  set(dir ${CMAKE_BINARY_DIR}/assets)
  add_custom_command(
    OUTPUT ${dir}/assets.cc ${dir}/assets.h
    COMMAND ${CMAKE_COMMAND} -DDIR=${dir} "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  add_library(${target} STATIC ${dir}/assets.cc ${dir}/assets.h)
  target_include_directories(${target} PUBLIC ${dir})
endfunction()
