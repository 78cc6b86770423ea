#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_reseal.sh MAKE_MODELS RESEAL COUNT: alters the models whose code has contracts, COUNT times each.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$work"
"$2" --count "$3" "$work/contract.bmodel" "$work/control.bmodel" "$work/sized.bmodel" "$work/data_sized.bmodel" "$work/custom.bmodel" "$work/custom_sized.bmodel" "$work/npu_add.bmodel" "$work/npu_mixed.bmodel" \
  "$work/abacus.bmodel" "$work/abacus_host.bmodel"
