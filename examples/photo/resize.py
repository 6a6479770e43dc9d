"""resize.py IN WIDTHxHEIGHT OUT: crops a picture to the asked shape about its centre, resizes it, writes an 8-bit RGB PNG."""
import os
import sys

from PIL import Image, ImageOps


def main():
    source, size, out = sys.argv[1:]
    width, height = (int(n) for n in size.split("x"))
    picture = ImageOps.exif_transpose(Image.open(source)).convert("RGB")
    picture = ImageOps.fit(picture, (width, height), method=Image.Resampling.LANCZOS)
    picture.save(out + ".part", format="PNG")
    os.replace(out + ".part", out)


main()
