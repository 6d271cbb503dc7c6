# keratin_add_model(TARGET MODEL FILE [OPTIONS ...])
#
# Compiles a model with keratinc while building. TARGET is a static library to
# link; its header TARGET.h is found by those who link it. OPTIONS go to
# keratinc, such as --batch=1 or --target=x86-64-v3. With --weights=external the
# weights are the file in TARGET's property KERATIN_WEIGHTS.
function(keratin_add_model target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODEL" "OPTIONS")
  if(NOT arg_MODEL OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "keratin_add_model: expected TARGET MODEL FILE [OPTIONS ...], "
      "unknown: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  get_filename_component(model ${arg_MODEL} ABSOLUTE)
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target}.keratin)
  set(prefix ${directory}/${target})
  set(outputs ${prefix}.a ${prefix}.h)
  if("--weights=external" IN_LIST arg_OPTIONS)
    list(APPEND outputs ${prefix}.weights)
  endif()
  file(MAKE_DIRECTORY ${directory}) # an include directory must exist

  if(TARGET Keratin::keratinc)
    set(compiler Keratin::keratinc)
  else()
    set(compiler keratinc)
  endif()
  add_custom_command(OUTPUT ${outputs}
    COMMAND ${compiler} ${model} -o ${prefix} --emit=lib ${arg_OPTIONS}
    DEPENDS ${model} ${compiler}
    COMMENT "Compiling the model ${arg_MODEL}" VERBATIM)
  add_custom_target(${target}_files DEPENDS ${outputs})

  add_library(${target} STATIC IMPORTED)
  add_dependencies(${target} ${target}_files)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${prefix}.a
    INTERFACE_INCLUDE_DIRECTORIES ${directory}
    KERATIN_WEIGHTS ${prefix}.weights)
  if("-O0" IN_LIST arg_OPTIONS) # calls libm
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES m)
  endif()
endfunction()
