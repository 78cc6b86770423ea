// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// expected-error @below {{is for an invalid chip: unknown chip 'npu-none'}}
npu.program @chip staged chip "npu-none" inputs 0 layers [] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
}

// -----

// expected-error @below {{has 2 memories, expected those of constants, workspace and inputs, at least 3}}
npu.program @memories staged chip "npu-base" inputs 1 layers [] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
}

// -----

npu.program @address staged chip "npu-base" inputs 0 layers [] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{has an address in a program that is staged}}
  %0 = npu.buffer 64 : [1, 1, 1, 64] "i8" at 0 live [0, 0]
}

// -----

npu.program @no_address allocated chip "npu-base" inputs 0 layers [] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{has no address in a program that is allocated}}
  %0 = npu.buffer 64 : [1, 1, 1, 64] "i8"
}

// -----

npu.program @end allocated chip "npu-base" inputs 0 layers [] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{ends at 131136, a lane has 131072 bytes}}
  %0 = npu.buffer 128 : [1, 1, 1, 128] "i8" at 131008 live [0, 0]
}

// -----

npu.program @shared allocated chip "npu-base" inputs 0 layers [] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-note @below {{this one, from 0 on}}
  %0 = npu.buffer 128 : [1, 1, 1, 128] "i8" at 0 live [0, 2]
  // expected-error @below {{shares bytes with another buffer that is in use at the same time}}
  %1 = npu.buffer 128 : [1, 1, 1, 128] "i8" at 64 live [2, 3]
}

// -----

npu.program @live allocated chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  %0 = npu.buffer 64 : [1, 1, 1, 64] "i8" at 0 live [1, 1]
  npu.stage load {
    // expected-error @below {{is in stage 0, but the buffer of y is only in use in stages 1 to 1}}
    npu.command fill y = %0[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 0
  } compute {
  } store {
  }
}

// -----

npu.program @outside staged chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  %0 = npu.buffer 64 : [1, 1, 1, 64] "i8"
  npu.stage load {
    // expected-error @below {{touches bytes 8 to 72 as y, its buffer has 64}}
    npu.command fill y = %0[8] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 0
  } compute {
  } store {
  }
}

// -----

npu.program @layer staged chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  npu.stage load {
  } compute {
  } store {
    // expected-error @below {{is of layer 1, but the program's number of layers is 1}}
    npu.command fill y = %workspace[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 1
  }
}

// -----

npu.program @order staged chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{is in a program that is staged, which consists of stages}}
  npu.command fill y = %workspace[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 0
}

// -----

npu.program @id ordered chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{has an id in a program that is ordered}}
  npu.command fill y = %workspace[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 0 id 1 wait 0
}

// -----

npu.program @mnemonic ordered chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{the NPU does not have a command 'jump'}}
  npu.command jump y = %workspace[0] : i8 [64, 64, 64, 1] layer 0
}

// -----

npu.program @field ordered chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{'fill' does not have a field 'window' here}}
  npu.command fill y = %workspace[0] : i8 [64, 64, 64, 1], window = {kernel = [1, 1]} layer 0
}

// -----

npu.program @number ordered chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{256 does not fit its field}}
  npu.command pool y = %workspace[0] : i8 [64, 64, 64, 1], x = %workspace[0] : i8 [64, 64, 64, 1], window = {kernel = [256, 1]} layer 0
}

// -----

npu.program @operand ordered chip "npu-base" inputs 0 layers ["a"] {
^bb0(%constants: !npu.memory, %workspace: !npu.memory):
  // expected-error @below {{does not have its tensor x}}
  npu.command copy y = %workspace[0] : i8 [64, 64, 64, 1], shape = [1, 1, 1, 64] layer 0
}
