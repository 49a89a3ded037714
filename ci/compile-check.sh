#!/usr/bin/env bash
# Compiles every program for GPUs that this machine lacks: compile-check.sh rocm|rocm-sid|cuda BUILD_DIR
#   rocm       for gfx90a, with the hipcc of Debian 12; then the kernels at -O3 for gfx90a, gfx942 and
#              gfx950 with its newest clang, which alone knows them all
#   rocm-sid   for gfx90a, gfx942 and gfx950 at -O3, with that of Debian sid: compile-newest-hip.sh
#   cuda       for sm_80, sm_90 and sm_100, with the nvcc of the Python packages in .venv
# Then starts each measuring program with all devices hidden by a variable; it must end with 8.
# AMD's machine code must pass machine-code.py.
set -euo pipefail
cd "$(dirname "$0")/.."
runtime=$1
build=$2
# Only the device code that machine-code.py reads is optimized: the programs measure nothing here,
# and optimizing takes half of the time.
options=(-G Ninja -S . -B "$build" -DFABRICHECK_RUNTIME="${runtime%-sid}" -DFABRICHECK_WERROR=ON
  -DFABRICHECK_MPI=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
  "-DCMAKE_HIP_FLAGS_DEBUG=-O0 -Xarch_device -O3" -DCMAKE_CUDA_FLAGS_DEBUG=-O0)
# What is no device code is compiled by clang, whose precompiled headers save half of the time; gcc
# compiles it for the host runtime.
clang=$(command -v clang++-15 || command -v clang++ || true)  # none in the chroot of rocm-sid
export PATH=$PWD/.venv/bin:$PWD/.venv/mpich/bin:$PATH  # mpicxx: any MPI will do to compile with

case $runtime in
  rocm)
    # CMake's HIP language wants one tree, as of a ROCm installation; Debian has its parts apart.
    triplet=$(gcc -print-multiarch)
    tree=$PWD/$build/rocm-tree
    export CXX=$clang
    clang=$(dirname "$(dirname "$(readlink -f "$clang")")")
    mkdir -p "$tree"
    ln -sfn /usr/bin "$tree/bin"
    ln -sfn /usr/include "$tree/include"
    ln -sfn "/usr/lib/$triplet" "$tree/lib"
    ln -sfn "/usr/lib/$triplet/amdgcn" "$tree/amdgcn"
    ln -sfn "$clang" "$tree/llvm"
    export CMAKE_PREFIX_PATH=$tree ROCM_PATH=$tree
    options+=(-DCMAKE_HIP_ARCHITECTURES=gfx90a
      -DCMAKE_HIP_COMPILER_ROCM_ROOT="$tree" -DCMAKE_HIP_COMPILER="$tree/llvm/bin/clang++"
      -DCMAKE_HIP_FLAGS="--rocm-path=$tree --save-temps=obj")
    ;;
  rocm-sid)
    export ROCM_PATH=/usr
    HIP_DEVICE_LIB_PATH=$(find /usr/lib/llvm-* -path '*/amdgcn/bitcode')
    export HIP_DEVICE_LIB_PATH
    options+=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_HIP_ARCHITECTURES=gfx90a;gfx942;gfx950"
      -DCMAKE_HIP_COMPILER_ROCM_ROOT=/usr -DCMAKE_HIP_COMPILER="$(hipconfig --hipclangpath)/clang++"
      -DCMAKE_HIP_FLAGS=--save-temps=obj)
    ;;
  cuda)
    toolkit=$(.venv/bin/python -c \
      'import importlib.util as u; print(u.find_spec("nvidia.cu13").submodule_search_locations[0])')
    # Names under which nvcc and CMake look for its run-time library; the packages lack them.
    ln -sfn lib "$toolkit/lib64"
    ln -sfn libcudart.so.13 "$toolkit/lib/libcudart.so"
    export CXX=$clang
    options+=("-DCMAKE_CUDA_ARCHITECTURES=80;90;100" -DCMAKE_CUDA_COMPILER="$toolkit/bin/nvcc")
    ;;
  *)
    echo "compile-check: '$runtime' is not rocm, rocm-sid or cuda" >&2
    exit 2
    ;;
esac

# newest_clang: the device code of the build by clang 22, in $build/newest-clang. HIP 5.2, of which
# the headers and the library of device code are, knows neither that clang nor two of the targets:
# for these a file states the number, as AMD's library has it (gfx942 is 9.4.2), and a macro the
# lanes of a wave, which this clang no longer has.
newest_clang() {
  local folder=$PWD/$build/newest-clang target number source
  mkdir -p "$folder/libraries"
  ln -sfn "$tree"/amdgcn/bitcode/*.bc "$folder/libraries"
  for target in gfx942=9402 gfx950=9500; do
    number=${target#gfx}
    clang-22 -x ir -target amdgcn-amd-amdhsa -nogpulib -emit-llvm -c -Wno-override-module \
      -o "$folder/libraries/oclc_isa_version_${number%=*}.bc" - \
      <<< "@__oclc_ISA_version = weak_odr hidden addrspace(4) constant i32 ${number#*=}, align 4"
  done
  for target in gfx90a gfx942 gfx950; do
    for source in $(ninja -C "$build" -t commands | grep -o -e '-x hip -c [^ ]*' | cut -d' ' -f4); do
      printf '%s\n' "-o $folder/$(basename "$source" .cpp)-hip-amdgcn-amd-amdhsa-$target.s --offload-arch=$target $source"
    done
  done | xargs --max-lines=1 --max-procs="$(nproc)" clang++-22 -x hip --offload-device-only -S -O3 \
    -std=c++17 -Wall -Wextra -Werror --rocm-path="$tree" --rocm-device-lib-path="$folder/libraries" \
    -mcode-object-version=5 -D__HIP_PLATFORM_AMD__=1 -D__AMDGCN_WAVEFRONT_SIZE=64 \
    -Isrc/bench -I"$build/include"
  ci/machine-code.py "$folder"
}

log=$build/compile-check.log
mkdir -p "$build"
if ! { cmake "${options[@]}" && cmake --build "$build"; } > "$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "compile-check: the runtime $runtime does not compile; the whole log is $log" >&2
  exit 1
fi
export CUDA_VISIBLE_DEVICES='' HIP_VISIBLE_DEVICES=-1  # as if there were none here either
for program in "$build"/bin/*; do
  [ "${program##*/}" != aftermath ] || continue  # it asks no runtime
  status=0
  "$program" --output /dev/null 2> "$build/start.txt" || status=$?
  if [ "$status" -ne 8 ]; then
    echo "compile-check: $program ended with $status, not with 8 (devices hidden): $(cat "$build/start.txt")" >&2
    exit 1
  fi
done
case $runtime in
  rocm) ci/machine-code.py "$build/src" && newest_clang ;;
  rocm-sid) ci/machine-code.py "$build/src" ;;
esac
echo "compile-check: $runtime compiles ($(ls "$build/bin" | tr '\n' ' ')); without a device: $(cat "$build/start.txt")"
