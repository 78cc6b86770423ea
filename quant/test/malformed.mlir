// Faulty edits of tables: each message names the file, the place, the value found and the allowed values.
// SPDX-License-Identifier: Apache-2.0
// RUN: %python %S/Inputs/malformed.py %S/Inputs/table.json %t
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/absent.json 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: cannot read '{{.*}}absent.json': {{[Nn]}}o such file or directory
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/syntax.json 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: error: '{{.*}}syntax.json' is not valid JSON, at line:column [3:
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/format.json 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: '{{.*}}format.json': "format" is not "tessera-calibration"; make a new one with run_calibration
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/version.json 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: error: '{{.*}}version.json': "version" is 2, this program reads version 1
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/decides.json 2>&1 | FileCheck %s --check-prefix=DECIDES
// DECIDES: error: '{{.*}}decides.json': "decides_types" is "yes", expected true or false
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/unknown_key.json 2>&1 | FileCheck %s --check-prefix=UNKNOWN_KEY
// UNKNOWN_KEY: error: '{{.*}}unknown_key.json': tensor 'x': unknown key "treshold"; allowed are dtype, error, largest, max, method, min, name, scale, symmetric, threshold, weight_terms, zero_point
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/missing.json 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: '{{.*}}missing.json': tensor 'x': "min" is missing
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/negative.json 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: '{{.*}}negative.json': tensor 'x': threshold -127.000000 is not positive
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/crossed.json 2>&1 | FileCheck %s --check-prefix=CROSSED
// CROSSED: error: '{{.*}}crossed.json': tensor 'x': min 3.000000 is above max 2.000000
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/text.json 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: error: '{{.*}}text.json': tensor 'x': "threshold" is "big", expected a finite number
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/infinite.json 2>&1 | FileCheck %s --check-prefix=INFINITE
// INFINITE: error: '{{.*}}infinite.json': tensor 'x': "max" is 1{{.*}}, expected a finite number
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/scale.json 2>&1 | FileCheck %s --check-prefix=SCALE
// SCALE: error: '{{.*}}scale.json': tensor 'b': scale 0.500000 is not threshold / 127 = 0.250000; if you change threshold, min or max, delete scale and zero_point, which are derived from them
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/zero_point.json 2>&1 | FileCheck %s --check-prefix=ZERO_POINT
// ZERO_POINT: error: '{{.*}}zero_point.json': tensor 'b': "zero_point" is 300, expected a whole number from -128 to 127
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/error.json 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: '{{.*}}error.json': tensor 'x': error -1.000000 is negative
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/dtype.json 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: error: '{{.*}}dtype.json': tensor 'x': dtype 'int4'; allowed: int8, int16, float32
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/twice.json 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: '{{.*}}twice.json': tensor 'x': is listed twice
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/nameless.json 2>&1 | FileCheck %s --check-prefix=NAMELESS
// NAMELESS: error: '{{.*}}nameless.json': entry 0 of "tensors" has no name
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/foreign.json 2>&1 | FileCheck %s --check-prefix=FOREIGN
// FOREIGN: error: '{{.*}}foreign.json': the model has no tensor 'yy'; did you mean 'y'?
// RUN: not tessera-opt %s --top-quantize="calibration-table=%t/good.json quantize-table=%t/q_syntax.json" 2>&1 | FileCheck %s --check-prefix=Q_SYNTAX
// Q_SYNTAX: error: '{{.*}}q_syntax.json' is not valid JSON, at line:column [1:
// RUN: not tessera-opt %s --top-quantize="calibration-table=%t/good.json quantize-table=%t/q_format.json" 2>&1 | FileCheck %s --check-prefix=Q_FORMAT
// Q_FORMAT: error: '{{.*}}q_format.json': "format" is not "tessera-quantize-table"; a quantise table is
// RUN: not tessera-opt %s --top-quantize="calibration-table=%t/good.json quantize-table=%t/q_type.json" 2>&1 | FileCheck %s --check-prefix=Q_TYPE
// Q_TYPE: error: '{{.*}}q_type.json': op 'y': type 'INT3'; allowed: F32, INT8, INT16
// RUN: not tessera-opt %s --top-quantize="calibration-table=%t/good.json quantize-table=%t/q_key.json" 2>&1 | FileCheck %s --check-prefix=Q_KEY
// Q_KEY: error: '{{.*}}q_key.json': op 'y': unknown key "typ"
// RUN: not tessera-opt %s --top-quantize="calibration-table=%t/good.json quantize-table=%t/q_twice.json" 2>&1 | FileCheck %s --check-prefix=Q_TWICE
// Q_TWICE: error: '{{.*}}q_twice.json': op 'y': is listed twice
// RUN: not tessera-opt %s --top-quantize="calibration-table=%t/good.json quantize-table=%t/q_foreign.json" 2>&1 | FileCheck %s --check-prefix=Q_FOREIGN
// Q_FOREIGN: error: '{{.*}}q_foreign.json': the model has no op or tensor 'Conv_9'; did you mean 'Conv_0'?
// RUN: not tessera-opt %s --top-quantize="calibration-table=%t/good.json quantize-table=%t/q_impossible.json" 2>&1 | FileCheck %s --check-prefix=Q_IMPOSSIBLE
// Q_IMPOSSIBLE: error: '{{.*}}q_impossible.json': 's' cannot be INT8: top.softmax has no integer form

func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "s"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("Conv_0")
  %s = top.softmax %y {axis = 1 : i64, top.outputs = ["s"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %s : tensor<1x2x4x4xf32>
}
