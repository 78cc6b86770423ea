#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A model that takes pixels, so that the server only has to decode and resize pictures.
set -eu
here=$(dirname "$0")
net=$here/../../regression/models/mobilenetv1_0.25_128

model_transform --model_def "$net/mobilenetv1_0.25_128.onnx" --mlir net_top.mlir --quiet \
    --resize_dims 128,128 --pixel_format rgb \
    --mean 127.5,127.5,127.5 --scale 0.00784313725490196,0.00784313725490196,0.00784313725490196
model_deploy --mlir net_top.mlir --quantize F32 --fuse_preprocess packed --model net.bmodel --quiet

"${PYTHON:-python3}" "$here/server.py" "$net"
