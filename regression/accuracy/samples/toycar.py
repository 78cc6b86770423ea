# SPDX-License-Identifier: Apache-2.0
"""Calibration samples of the anomaly detector: log-mel frames from before the scored part of the recording."""
import os
from pathlib import Path

import judges


def samples():
    recording = Path(os.environ["TESSERA_DATA"]) / "audio/test_16k.wav"
    for number, array in enumerate(judges.log_mel(recording, 0, judges.SCORED_FROM)):
        if number % 10 == 0:
            yield {"input": array}
