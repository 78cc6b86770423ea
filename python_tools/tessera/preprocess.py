# SPDX-License-Identifier: Apache-2.0
"""Converts a picture to an input tensor, by settings declared at model_transform, stored in the model, and used by
every tool.

Order of the steps: decode, resize (plain, letterbox or short side), pad or centre-crop to the input's height and width,
channel order, (x - mean) * scale, layout. Means and scales are per channel in the channel order of `pixel_format`;
pixel values are 0..255.
"""
from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from .errors import TesseraError, usage_error

if TYPE_CHECKING:
    from PIL import Image

MOST_PIXELS = 1 << 16  # per side; the square of more does not fit into memory
PICTURE_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".webp", ".gif", ".tif", ".tiff"}
PIXEL_FORMATS = ("rgb", "bgr", "gray")
DEFAULT_PIXEL_FORMAT = "bgr"
RATIO_MODES = ("letterbox", "short_side_scale")
PAD_TYPES = ("normal", "center")
CHANNEL_FORMATS = ("nchw", "nhwc")


def _check_numbers(key: str, value: Any) -> None:
    """Checks a value from a file, which may contain anything."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if value is not None and not all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values):
        raise ValueError(f'"{key}" is {str(value)[:60]}, expected numbers')


@dataclass(frozen=True)
class Preprocess:
    """The pre-processing of one model.

    resize_dims: (height, width) to which the picture is resized; None: the input's own size. keep_ratio_mode: letterbox
    fits the picture inside and pads with pad_value (pad_type normal: right and bottom; center: all sides);
    short_side_scale fits the shorter side and centre-crops.
    """

    resize_dims: tuple[int, int] | None = None
    keep_aspect_ratio: bool = False
    keep_ratio_mode: str = "letterbox"
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    pixel_format: str = DEFAULT_PIXEL_FORMAT
    channel_format: str = "nchw"
    pad_value: float = 0.0
    pad_type: str = "center"

    def to_json(self) -> str:
        """Returns one line of JSON, as stored in the model."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> "Preprocess":
        """Parses the result of to_json. Raises TesseraError for unknown keys or values."""
        try:
            return Preprocess.from_fields(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise TesseraError(f"failed to read the model's pre-processing: {error}") from error

    @staticmethod
    def from_fields(record: Mapping[str, Any]) -> "Preprocess":
        """Converts a parsed JSON object. Raises TesseraError for unknown keys or values."""
        try:
            fields = dict(record)
            for key in ("mean", "scale", "pad_value", "resize_dims"):
                _check_numbers(key, fields.get(key))
            for key in ("resize_dims", "mean", "scale"):
                if fields.get(key) is not None:
                    fields[key] = tuple(fields[key])
            result = Preprocess(**fields)
        except (ValueError, TypeError, AttributeError) as error:
            raise TesseraError(f"failed to read the model's pre-processing: {error}") from error
        result.check()
        return result

    def check(self) -> None:
        """Raises a usage error for contradictory values."""
        channels = 1 if self.pixel_format == "gray" else 3
        for flag, values in (("--mean", self.mean), ("--scale", self.scale)):
            if len(values) not in (1, channels):
                raise usage_error(
                    f"{flag} has {len(values)} values; pixel format {self.pixel_format} "
                    f"has {channels} channel(s): pass 1 or {channels}"
                )
        if self.resize_dims is not None and (len(self.resize_dims) != 2 or min(self.resize_dims) < 1):
            raise usage_error(f"--resize_dims {self.resize_dims}: expected height,width, both at least 1")
        if max(self.resize_dims or (1,)) > MOST_PIXELS:
            raise usage_error(f"--resize_dims {self.resize_dims}: a side has at most {MOST_PIXELS} pixels")
        for flag, values in (("--mean", self.mean), ("--scale", self.scale), ("--pad_value", (self.pad_value,))):
            if not all(map(math.isfinite, values)):
                raise usage_error(f"{flag} {','.join(map(str, values))}: expected finite numbers")
        for flag, value, allowed in (
            ("--pixel_format", self.pixel_format, PIXEL_FORMATS),
            ("--channel_format", self.channel_format, CHANNEL_FORMATS),
            ("--keep_ratio_mode", self.keep_ratio_mode, RATIO_MODES),
            ("--pad_type", self.pad_type, PAD_TYPES),
        ):
            if value not in allowed:
                raise usage_error(f"{flag} '{value}': expected one of {', '.join(allowed)}")

    def describe(self) -> str:
        """Describes the steps in words."""
        steps = []
        if self.resize_dims:
            mode = f" ({self.keep_ratio_mode})" if self.keep_aspect_ratio else ""
            steps.append(f"resize {self.resize_dims[0]}x{self.resize_dims[1]}{mode}")
        steps.append(self.pixel_format)
        if any(self.mean) or any(s != 1 for s in self.scale):
            steps.append("(x - {}) * {}".format(_short(self.mean), _short(self.scale)))
        return " -> ".join([*steps, self.channel_format])

    def apply(self, picture: "str | Path | Image.Image", shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
        """Returns the picture as a tensor of `shape` ([1,C,H,W] or [1,H,W,C] by channel_format): float32, or uint8 if
        the model takes pixels and does the rest itself.

        Raises TesseraError if the picture cannot be read or `shape` is not the shape of a picture.
        """
        height, width = self._input_size(shape)
        image = _eight_bits(read_upright(picture)).convert("L" if self.pixel_format == "gray" else "RGB")
        pixels = self._place(image, height, width)
        if self.pixel_format == "bgr":
            pixels = pixels[:, :, ::-1]
        mean = np.asarray(self.mean, np.float32)
        scale = np.asarray(self.scale, np.float32)
        values = (pixels - mean) * scale
        if self.channel_format == "nchw":
            values = values.transpose(2, 0, 1)
        return np.ascontiguousarray(_pixels(values[None]) if dtype == "uint8" else values[None], dtype=dtype)

    def size_of(self, picture: "str | Path") -> tuple[int, int]:
        """Returns the height and width that a picture has after resizing, if the model leaves them open."""
        image = read_upright(picture)
        return self.resize_dims or (image.height, image.width)

    def finish(self, pixels: np.ndarray, given: "Preprocess") -> np.ndarray:
        """Applies the remaining steps to pixels [N,...] with the order and layout of `given`, which is the part of this
        pre-processing outside the model; returns the float32 input."""
        values = pixels.astype(np.float32)
        if given.channel_format == "nchw":
            values = values.transpose(0, 2, 3, 1)
        if given.pixel_format != self.pixel_format:
            values = values[..., ::-1]
        values = (values - np.asarray(self.mean, np.float32)) * np.asarray(self.scale, np.float32)
        if self.channel_format == "nchw":
            values = values.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(values, np.float32)

    def _input_size(self, shape: tuple[int, ...]) -> tuple[int, int]:
        channels = 1 if self.pixel_format == "gray" else 3
        form = f"[1,{channels},H,W]" if self.channel_format == "nchw" else f"[1,H,W,{channels}]"
        axis = 1 if self.channel_format == "nchw" else 3
        if len(shape) != 4 or shape[0] != 1 or shape[axis] != channels:
            raise TesseraError(
                f"failed to convert a picture to the input: the input is {list(shape)}, "
                f"a {self.pixel_format} picture gives {form}",
                hint="pass the input as .npz, or set --pixel_format / --channel_format at model_transform",
            )
        return (shape[2], shape[3]) if self.channel_format == "nchw" else (shape[1], shape[2])

    def _place(self, image: "Image.Image", height: int, width: int) -> np.ndarray:
        """Resizes the picture to height x width; returns float32 [H,W,C] in RGB or gray, 0..255."""
        resize_h, resize_w = self.resize_dims or (height, width)
        if not self.keep_aspect_ratio:
            pixels = _resize(image, resize_h, resize_w)
        elif self.keep_ratio_mode == "letterbox":
            ratio = min(resize_w / image.width, resize_h / image.height)
            pixels = _resize(image, max(1, int(image.height * ratio)), max(1, int(image.width * ratio)))
            pixels = self._pad(pixels, resize_h, resize_w)
        else:
            ratio = max(resize_w / image.width, resize_h / image.height)
            pixels = _resize(
                image, max(resize_h, round(image.height * ratio)), max(resize_w, round(image.width * ratio))
            )
        pixels = self._pad(pixels, max(height, pixels.shape[0]), max(width, pixels.shape[1]))
        top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
        return pixels[top : top + height, left : left + width]

    def _pad(self, pixels: np.ndarray, height: int, width: int) -> np.ndarray:
        extra_h, extra_w = height - pixels.shape[0], width - pixels.shape[1]
        if extra_h <= 0 and extra_w <= 0:
            return pixels
        top, left = (extra_h // 2, extra_w // 2) if self.pad_type == "center" else (0, 0)
        return np.pad(pixels, ((top, extra_h - top), (left, extra_w - left), (0, 0)), constant_values=self.pad_value)


def _pixels(values: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(values, 0, 255)).astype(np.uint8)


def _short(values: tuple[float, ...]) -> str:
    return ",".join(f"{v:g}" for v in values)


def read_upright(picture: "str | Path | Image.Image") -> "Image.Image":
    """Reads a picture and rotates it according to its EXIF orientation: cameras store the sensor's view and note how
    they were held, and viewers, OpenCV and annotators show the picture upright. Raises TesseraError if it cannot be
    read."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise TesseraError(
            "reading pictures needs Pillow", hint="apt install python3-pil, or pip install pillow"
        ) from error
    if isinstance(picture, Image.Image):
        return picture
    try:
        with Image.open(picture) as image:
            image.load()
            return ImageOps.exif_transpose(image)
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
        raise TesseraError(f"failed to read picture {picture}: {error}") from error


def _eight_bits(image: "Image.Image") -> "Image.Image":
    """Converts a picture with 16 bits per pixel to 8; Pillow's own conversion would clip all values above 255 to
    white."""
    from PIL import Image

    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image).astype(np.float64)
    return Image.fromarray(np.rint(np.clip(values / 257, 0, 255)).astype(np.uint8))


def _resize(image: "Image.Image", height: int, width: int) -> np.ndarray:
    """Resizes bilinearly, antialiased when shrinking; returns float32 [H,W,C]."""
    from PIL import Image

    if (image.height, image.width) != (height, width):
        image = image.resize((width, height), Image.BILINEAR)
    pixels = np.asarray(image, np.float32)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def is_picture(path: str | Path) -> bool:
    """Returns true if the file's suffix is that of a picture."""
    return Path(path).suffix.lower() in PICTURE_SUFFIXES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the pre-processing flags of model_transform."""
    group = parser.add_argument_group(
        "pre-processing, stored in the model and reused by every tool; y = (x - mean) * scale"
    )
    group.add_argument("--resize_dims", metavar="H,W", help="resize pictures to this size; default: the input's size")
    group.add_argument("--keep_aspect_ratio", action="store_true", help="keep the picture's aspect ratio when resizing")
    group.add_argument(
        "--keep_ratio_mode",
        choices=RATIO_MODES,
        default="letterbox",
        help="letterbox: pad to size; short_side_scale: centre-crop to size (default: %(default)s)",
    )
    group.add_argument("--mean", metavar="A,B,C", help="per-channel mean, in 0..255 (default: 0)")
    group.add_argument("--scale", metavar="A,B,C", help="per-channel factor (default: 1)")
    group.add_argument(
        "--pixel_format",
        choices=PIXEL_FORMATS,
        help=f"channel order (default: {DEFAULT_PIXEL_FORMAT}, with a warning if pictures are read)",
    )
    group.add_argument(
        "--channel_format", choices=CHANNEL_FORMATS, default="nchw", help="layout (default: %(default)s)"
    )
    group.add_argument("--pad_value", type=float, default=0.0, help="pixel value of padding (default: %(default)s)")
    group.add_argument(
        "--pad_type",
        choices=PAD_TYPES,
        default="center",
        help="normal: pad right and bottom; center: all sides (default: %(default)s)",
    )


def from_arguments(args: argparse.Namespace) -> Preprocess | None:
    """Returns the pre-processing set by the flags; None if no flag was given."""
    result = Preprocess(
        resize_dims=_numbers("--resize_dims", args.resize_dims, int) if args.resize_dims else None,  # type: ignore
        keep_aspect_ratio=args.keep_aspect_ratio,
        keep_ratio_mode=args.keep_ratio_mode,
        mean=_numbers("--mean", args.mean, float) if args.mean else (0.0,),
        scale=_numbers("--scale", args.scale, float) if args.scale else (1.0,),
        pixel_format=args.pixel_format or DEFAULT_PIXEL_FORMAT,
        channel_format=args.channel_format,
        pad_value=args.pad_value,
        pad_type=args.pad_type,
    )
    result.check()
    return None if result == Preprocess() else result


def default_order_warning(args: argparse.Namespace, picture: str | None) -> str:
    """Returns a warning if pictures are read in the default channel order without a request for it; "" otherwise.
    picture: the file of --input or --test_input, if there is one."""
    if args.pixel_format or (from_arguments(args) is None and not (picture and is_picture(picture))):
        return ""
    return (
        f"pictures are read as {DEFAULT_PIXEL_FORMAT}, the default: most ONNX networks were trained on rgb; "
        "pass --pixel_format rgb or bgr"
    )


def _numbers(flag: str, text: str, kind: type) -> tuple:
    try:
        return tuple(kind(part) for part in text.strip("[]() ").split(","))
    except ValueError:
        raise usage_error(f"{flag} '{text}': expected numbers separated by commas") from None
