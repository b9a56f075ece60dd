"""A wheel of the package: CMake makes the module, setuptools packs it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSION = re.search(r"project\(weft VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


class CMakeModule(build_ext):
    """Builds the target weft_python: in the build folder WEFT_BUILD_DIR if there is one, else in one of its own."""

    def build_extension(self, ext):
        build = pathlib.Path(os.environ.get("WEFT_BUILD_DIR") or pathlib.Path(self.build_temp).resolve())
        if "WEFT_BUILD_DIR" not in os.environ:
            subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                            "-DWEFT_BUILD_TESTS=OFF", "-DWEFT_BUILD_PYTHON=REQUIRED", f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "weft_python"], check=True)
        made = pathlib.Path(self.get_ext_fullpath(ext.name))
        made.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / "python/weft" / made.name, made)


setup(name="weft", version=VERSION, description="Full-stack fabric simulator for GPUDirect RDMA",
      license="Apache-2.0", python_requires=">=3.11", packages=["weft"], package_data={"weft": ["py.typed", "*.pyi"]},
      ext_modules=[Extension("weft._weft", sources=[])], extras_require={"pandas": ["pandas"]},
      cmdclass={"build_ext": CMakeModule})
