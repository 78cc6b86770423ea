#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The networks are not in the repository: the folder TESSERA_DATA must contain models/rnn/dtln_model_1.onnx
# (breizhn/DTLN).
set -eu
here=$(dirname "$0")
for i in 1 2; do
  model_transform --model_def "$TESSERA_DATA/models/rnn/dtln_model_$i.onnx" --mlir dtln_top.mlir --quiet
  model_deploy --mlir dtln_top.mlir --quantize F32 --model dtln_$i.bmodel --quiet
done
"${PYTHON:-python3}" "$here/denoise.py" "$TESSERA_DATA/audio/test_16k.wav"
