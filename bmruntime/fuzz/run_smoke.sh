#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_smoke.sh MAKE_MODELS MAKE_CORPUS FUZZER SECONDS: a short run of the loader's fuzzer from real models.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/models" "$work/corpus"
"$1" "$work/models"
for model in "$work"/models/*.bmodel; do
  "$2" "$model" "$work/corpus/$(basename "$model")"
done
"$3" -max_total_time="$4" -max_len=65536 -rss_limit_mb=2048 -artifact_prefix="${FUZZ_ARTIFACTS:-$work}/" \
  -print_final_stats=1 -verbosity=0 "$work/corpus"
