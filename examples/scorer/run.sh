#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Half the precision: does it cost anything that we care for?
set -eu
here=$(dirname "$0")
net=$here/../../regression/models/mobilenetv1_0.25_128

model_transform --model_def "$net/mobilenetv1_0.25_128.onnx" --mlir net_top.mlir --quiet
for type in F32 BF16; do
  model_deploy --mlir net_top.mlir --quantize $type --model $type.bmodel --quiet
done
tessera accuracy F32.bmodel BF16.bmodel --scorer "$here/scorer.py" --data "$net/pictures" --max_drop 5 | grep points
