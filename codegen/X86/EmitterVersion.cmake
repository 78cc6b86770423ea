# Writes OUT with a hash over the sources of the emitters: kernels cached by another emitter are not used.
# Usage: cmake -DDIR=<folder> -DLLVM=<version> -DOUT=<file> -P EmitterVersion.cmake
file(GLOB sources ${DIR}/*.cpp ${DIR}/*.h ${DIR}/../../bmodel_format/include/bmodel/numerics*.h
     ${DIR}/../../bmodel_format/include/bmodel/kernel_*.h)
list(SORT sources)
set(text "${LLVM}")
foreach(source ${sources})
  file(SHA256 ${source} hash)
  string(APPEND text " ${hash}")
endforeach()
string(SHA256 version "${text}")
file(CONFIGURE OUTPUT ${OUT} CONTENT "static constexpr char kEmitterVersion[] = \"${version}\";\n")
