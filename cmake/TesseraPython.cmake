# Selects the Python that runs tools and tests, and creates build/python and the launchers in build/bin.
#
# The default is the distribution's /usr/bin/python3, for which the apt packages (numpy, pillow, rich, pytest, onnx) are
# installed; a wheel build passes its own interpreter.
if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python that runs the tools and the tests")
endif()
# Not required: the runtime alone builds on a machine without Python.
find_package(Python3 COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
# pybind11 and others read these two older variables.
set(Python_EXECUTABLE ${Python3_EXECUTABLE})
set(PYTHON_EXECUTABLE ${Python3_EXECUTABLE})

set(TESSERA_PYTHON_DIR ${PROJECT_BINARY_DIR}/python)

# The launcher prefers the checkout's .venv, which contains optional extras such as onnxruntime. It checks at run time,
# so a .venv created after the build is used, too.
set(TESSERA_PYTHON_LAUNCHER ${PROJECT_BINARY_DIR}/bin/tessera-python)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tessera-python.in ${TESSERA_PYTHON_LAUNCHER} @ONLY
               FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                WORLD_READ WORLD_EXECUTE)

# Links every .py, .js and .css file of SOURCE into build/python/SUBDIR, so that an edit does not need a build.
# build/python/tessera itself is a real folder, because the build puts compiled modules and bytecode beside the links.
# Without bytecode, every start of a command would compile all modules that it imports.
function(tessera_python_package source subdir)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${source} ${source}/*.py ${source}/*.js ${source}/*.css)
  foreach(file ${files})
    set(link ${TESSERA_PYTHON_DIR}/${subdir}/${file})
    get_filename_component(folder ${link} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    file(CREATE_LINK ${source}/${file} ${link} SYMBOLIC)
    list(APPEND links ${link})
  endforeach()
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
  string(MAKE_C_IDENTIFIER "bytecode_${name}" name)
  list(TRANSFORM files PREPEND ${source}/)
  add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.stamp
    COMMAND ${Python3_EXECUTABLE} -m compileall -q ${links}
    COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_CURRENT_BINARY_DIR}/${name}.stamp
    DEPENDS ${files} COMMENT "Bytecode of ${subdir}")
  add_custom_target(${name} ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${name}.stamp)
endfunction()

# tessera_python_command(model_runner tessera.cli.model_runner) creates a command in build/bin that runs a Python
# module.
function(tessera_python_command name module)
  set(TESSERA_COMMAND_MODULE ${module})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/python-command.in ${PROJECT_BINARY_DIR}/bin/${name} @ONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                  WORLD_READ WORLD_EXECUTE)
endfunction()
