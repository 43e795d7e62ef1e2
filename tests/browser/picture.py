"""Draws the picture of the page for the README: picture.py PAGE.html OUT.png [HEIGHT]."""

import base64
import pathlib
import sys

import browser as chromium

WIDTH = 1000


def main(source, target, height=760):
    browser = chromium.Browser(chromium.find())
    try:
        page = browser.page()
        page.view(width=WIDTH, height=int(height))
        page.open(pathlib.Path(source))
        page.settle()
        image = page.send("Page.captureScreenshot")
        pathlib.Path(target).write_bytes(base64.b64decode(image["data"]))
    finally:
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
