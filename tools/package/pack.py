"""The last step of `./dev package`: makes FOLDER.tar.xz, FOLDER.spdx.json and SHA256SUMS beside a folder. Equal folders give
equal files, whatever the time, the user, the machine's cores and the order in which files were written.
usage: pack.py FOLDER CARRIED SECONDS
CARRIED   lines "FILE<tab>ORIGIN" (cmake/Bundle.cmake): a file in the folder and the path of the library that it is a copy
          of, or the name of a Debian package that is compiled in
SECONDS   the date of everything, in Unix seconds"""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
from urllib.parse import quote

# Licences that a package does not give in one machine-readable word, by the start of its name.
LICENSES = {
    "libblis": "BSD-3-Clause", "libboost": "BSL-1.0", "libc6": "LGPL-2.1-or-later", "libgcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libfmt": "MIT", "libgfortran": "GPL-3.0-or-later WITH GCC-exception-3.1", "libgomp": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libhwloc": "BSD-3-Clause", "libjpeg": "IJG AND BSD-3-Clause AND Zlib", "libquadmath": "LGPL-2.1-or-later",
    "libsqlite3": "blessing", "libssl": "Apache-2.0", "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libturbojpeg": "IJG AND BSD-3-Clause AND Zlib", "onednn": "Apache-2.0", "zlib1g": "Zlib"}
# What copyright files call them, and SPDX.
NAMES = {"expat": "MIT", "mit": "MIT", "apache-2.0": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
         "zlib": "Zlib", "lgpl-2.1+": "LGPL-2.1-or-later", "gpl-2+": "GPL-2.0-or-later", "gpl-3+": "GPL-3.0-or-later",
         "isc": "ISC", "public-domain": "NOASSERTION", "apache license 2.0": "Apache-2.0"}
UNKNOWN = "NOASSERTION"


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def known_license(name):
    return next((license for start, license in LICENSES.items() if name.startswith(start)), "")


def debian_license(name):
    if known := known_license(name):
        return known
    try:
        text = pathlib.Path("/usr/share/doc", name, "copyright").read_text(errors="replace")
    except OSError:
        return UNKNOWN
    found = re.search(r"^Files: \*\n(?:.+\n)*?License: *(\S.*)", text, re.M)
    return NAMES.get(found[1].strip().lower(), UNKNOWN) if found else UNKNOWN


def debian_owner(path):
    """The Debian package of a file, which may have installed it in /lib where that is a link to /usr/lib."""
    real = str(path.resolve())
    for name in dict.fromkeys((real, str(path), real.removeprefix("/usr"))):
        if found := output_of("dpkg-query", "-S", name):
            return found.splitlines()[0].split(":")[0]
    return ""


def debian(name):
    version = output_of("dpkg-query", "-W", "-f=${Version}", name)
    return {"name": name, "version": version, "license": debian_license(name), "supplier": "Organization: Debian or a derivative",
            "purl": f"pkg:deb/debian/{quote(name)}@{quote(version)}"}


def wheel_of(path):
    """The wheel that has installed this file."""
    for prefix in path.parents:
        for record in sorted(prefix.glob("lib/python3*/site-packages/*.dist-info/RECORD")):
            installed = (record.parents[1] / line.split(",")[0] for line in record.read_text().splitlines())
            if any(file.name == path.name and file.resolve() == path.resolve() for file in installed):
                about = record.with_name("METADATA").read_text(errors="replace")
                value = lambda key: (re.search(rf"^{key}: *(.*)", about, re.M) or ["", ""])[1].strip()
                name, version = value("Name"), value("Version")
                license = value("License-Expression") or known_license(name) or NAMES.get(value("License").lower(), UNKNOWN)
                return {"name": name, "version": version, "license": license, "supplier": "Organization: Python Package Index",
                        "purl": f"pkg:pypi/{name}@{version}"}
    return None


def origin(text):
    """The package that a library or a name of CARRIED is of."""
    if not text.startswith("/"):
        return debian(text)
    path = pathlib.Path(text)
    if name := debian_owner(path):
        return debian(name)
    return wheel_of(path) or sys.exit(f"pack.py: {text} is of no Debian package and no wheel")


def digest(path, kind):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() if hasattr(hashlib, "file_digest") else hashlib.new(kind, file.read()).hexdigest()


def spdx(folder, carried, seconds):
    """The SPDX 2.3 document of a folder: all its files, and the packages that some of them are of."""
    files, names = [], {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        name = path.relative_to(folder).as_posix()
        names[name] = f"SPDXRef-File-{len(files)}"
        files.append({"SPDXID": names[name], "fileName": "./" + name, "licenseConcluded": UNKNOWN, "copyrightText": UNKNOWN,
                      "checksums": [{"algorithm": kind, "checksumValue": digest(path, kind.lower())} for kind in ("SHA1", "SHA256")]})

    def package(identity, about, own):
        sums = sorted(file["checksums"][0]["checksumValue"] for file in files if file["SPDXID"] in own)
        analyzed = {"filesAnalyzed": True, "packageVerificationCode": {
            "packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()}} if own else {"filesAnalyzed": False}
        described = {"SPDXID": identity, "name": about["name"], "versionInfo": about["version"], "supplier": about["supplier"],
                     "downloadLocation": UNKNOWN, "licenseConcluded": about["license"], "licenseDeclared": about["license"],
                     "copyrightText": UNKNOWN, **analyzed}
        if "purl" in about:
            described["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": about["purl"]}]
        return described

    own = {}   # of each package: its description, and its files
    for line in sorted(set(carried.read_text().splitlines())):
        name, source = line.split("\t")
        about = origin(source)
        entry = own.setdefault(about["name"], (about, set(), set()))
        real = (folder / name).resolve().relative_to(folder.resolve()).as_posix()
        entry[1 if source.startswith("/") else 2].add(names[real])
    main = "SPDXRef-Package-assay"
    version = folder.name.removeprefix("assay-").removesuffix("-linux-x86_64")
    packages = [package(main, {"name": "assay", "version": version, "supplier": "NOASSERTION", "license": "Apache-2.0"
                               if "Apache License" in (folder / "LICENSE").read_text() else UNKNOWN}, set(names.values()))]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", main)] + [(main, "CONTAINS", one) for one in names.values()]
    for name, (about, copies, compiled) in sorted(own.items()):
        identity = "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        packages.append(package(identity, about, copies))
        relations += [(main, "CONTAINS", identity)] + [(identity, "CONTAINS", one) for one in sorted(copies)]
        relations += [(one, "STATIC_LINK", identity) for one in sorted(compiled)]
    content = hashlib.sha256(json.dumps([packages, files]).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": folder.name,
            "documentNamespace": f"https://spdx.org/spdxdocs/{folder.name}-{content}",
            "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: assay-dev-package"]},
            "packages": packages, "files": files,
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}


def compress(folder, seconds, archive):
    """Sorted names, one date, root as the owner, modes that do not depend on the umask, and blocks of one size, which
    every number of threads compresses alike."""
    with open(archive, "wb") as file:
        tar = subprocess.Popen(["tar", "-C", folder.parent, "--sort=name", f"--mtime=@{seconds}", "--owner=0", "--group=0",
                                "--numeric-owner", "--mode=u+rwX,go=u,go-w", "--format=gnu", "-cf", "-", folder.name], stdout=subprocess.PIPE)
        xz = subprocess.run(["xz", "-6", "-T4", "--block-size=24MiB", "-c"], stdin=tar.stdout, stdout=file)
        tar.stdout.close()
        if tar.wait() or xz.returncode:
            sys.exit(f"pack.py: cannot write {archive}")


def pack(folder, carried, seconds):
    """Returns the paths of what it has written."""
    archive, listed = (folder.with_name(folder.name + end) for end in (".tar.xz", ".spdx.json"))
    listed.write_text(json.dumps(spdx(folder, carried, seconds), indent=1) + "\n")
    compress(folder, seconds, archive)
    sums = folder.with_name("SHA256SUMS")
    sums.write_text("".join(f"{digest(path, 'sha256')}  {path.name}\n" for path in (listed, archive)))
    return archive, listed, sums


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    pack(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), int(sys.argv[3]))
