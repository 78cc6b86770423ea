#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does lower precision cost anything that matters to us? Half the bits do not. 4-bit weights, rounded without samples,
# lose one picture in six, and --max_drop turns that into an error.
set -eu
here=$(dirname "$0")
net=$here/../../regression/models/mobilenetv1_0.25_128

model_transform --model_def "$net/mobilenetv1_0.25_128.onnx" --mlir net_top.mlir --quiet
for type in F32 BF16; do
  model_deploy --mlir net_top.mlir --quantize $type --model $type.bmodel --quiet
done
model_deploy --mlir net_top.mlir --quantize W4 --accept_loss --model W4.bmodel --quiet
score() {
  tessera accuracy "$@" --scorer "$here/scorer.py" --data "$net/pictures" --max_drop 5 2>/dev/null
}
score F32.bmodel BF16.bmodel | grep '^BF16.*points'
code=0
score F32.bmodel W4.bmodel >w4.txt || code=$?
grep '^W4.*points' w4.txt
echo "exit code $code"
